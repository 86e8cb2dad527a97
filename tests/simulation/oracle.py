"""What a run must end with, from the events and the answers of the APIs alone.

It repeats by hand what the declarations of `application.py` mean, and shares no code with the product: a defect of the
product's reducers, decoder or planning must not be in what it is judged by.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from contracts.records.record import HEARTBEAT_KEY, Reason
from tests.simulation.kafka.partitioner import partition_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from contracts import Application
    from contracts.records.record import Record

    Window = tuple[str, datetime]
    State = dict[str, Any]

REFUSED = {
    None: Reason.EMPTY,
    b"": Reason.EMPTY,
    b"{": Reason.MALFORMED,
    b"[]": Reason.MALFORMED,
    b"null": Reason.MALFORMED,
    b'{"load": NaN}': Reason.MALFORMED,
    b"{}": Reason.INVALID_FIELD,
    b'{"device_id": 5}': Reason.INVALID_FIELD,
    b"\xff\xfe": Reason.NOT_UTF8,
}
"""The reasons for which the forged events of all scripts are refused."""
KEPT_FOR = {
    "cars": timedelta(minutes=130),
    "short": timedelta(minutes=10),
    "visits": timedelta(minutes=15),
    "limited": timedelta(minutes=130),
    "batched": timedelta(minutes=15),
    "closed": timedelta(minutes=15),
    "iterated": timedelta(minutes=10),
    "refreshed": timedelta(minutes=10),
}
"""The time from the start of a window to the end of its grace, by application."""
OF_THE_CLOCK = frozenset({"visits", "batched", "closed"})
"""The applications whose windows are those of the clock."""
SKEW, EVERY = timedelta(minutes=1), timedelta(minutes=5)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class LastEvent:
    """The time of the last event of a window, and the largest offsets that it may have: which copy counts is open."""

    at: datetime = EPOCH
    offsets: dict[int, int | None] = field(default_factory=dict)
    """By layout, which is a number of partitions: the largest offset in the partition of the key."""
    copies: set[int] = field(default_factory=set)
    """The offsets of all copies of its events there."""

    def add(self, record: Record, key: bytes, layouts: Collection[int], *, is_first: bool) -> None:
        """Add an event, or another copy of it."""
        places = {layout for layout in layouts if partition_of(key, layout) == record.partition}
        self.copies |= {record.offset} if places else set()
        if not is_first:
            return
        self.at = max(self.at, record.timestamp)
        for layout in layouts:
            former = self.offsets.get(layout)
            self.offsets[layout] = max(former or 0, record.offset) if layout in places else former

    def may_have(self, offset: int | None, *, is_grown: bool) -> bool:
        """Return whether a state may have this offset.

        After a growth the copies of an event are in several partitions, and that of another one may count.
        """
        return offset in self.offsets.values() or (is_grown and offset in self.copies)


class Expected(NamedTuple):
    """The states that events give, and the reasons for which others are refused, by partition and offset."""

    windows: dict[Window, State]
    last: dict[Window, LastEvent]
    refused: dict[tuple[int, int], Reason]


class _Event(NamedTuple):
    ts: datetime
    plate: str | None
    load: int | None


def expected(application: Application, events: Sequence[Record], layouts: Collection[int]) -> Expected:
    """Return what these events give. `layouts` are the numbers of partitions that the topics had, and have."""
    windows: dict[Window, dict[str, _Event]] = defaultdict(dict)
    last: dict[Window, LastEvent] = defaultdict(LastEvent)
    refused = {}
    for record in events:
        if record.value is None and (record.key or b"").startswith(HEARTBEAT_KEY):
            continue
        found = _starts(application.name, record)
        if isinstance(found, Reason):
            refused[record.partition, record.offset] = found
            continue
        values = orjson.loads(record.value or b"")
        event = _Event(datetime.fromisoformat(values["ts"]), values.get("plate"), values.get("load"))
        for window in ((values["device_id"], start) for start in found):
            is_first = windows[window].setdefault(values["event_id"], event) is event
            last[window].add(record, window[0].encode(), layouts, is_first=is_first)
    return Expected({window: _state(list(copies.values())) for window, copies in windows.items()}, last, refused)


def _starts(application: str, record: Record) -> list[datetime] | Reason:
    """Return the windows of an event that are not over, or the reason for which it is refused."""
    if record.value in REFUSED:
        return REFUSED[record.value]
    values, stamp, kept_for = orjson.loads(record.value or b""), record.timestamp, KEPT_FOR[application]
    if application not in OF_THE_CLOCK and record.key != values["device_id"].encode():
        return Reason.WRONG_KEY
    ts, first_seen = datetime.fromisoformat(values["ts"]), datetime.fromisoformat(values["first_seen"])
    starts, times = [first_seen], [first_seen, ts]
    if application in OF_THE_CLOCK:
        last = ts - (ts - EPOCH) % EVERY
        starts, times = [last - EVERY, last], [ts]
    if max(times) > stamp + SKEW:
        return Reason.INCREDIBLE_TIME
    return [start for start in starts if stamp - start <= kept_for] or Reason.LATE


def _state(events: Sequence[_Event]) -> State:
    plates = [(event.ts, event.plate) for event in events if event.plate is not None]
    state = {"load": sum(event.load or 0 for event in events), "sightings": len(events)}
    return state | ({"plate": max(plates)[1]} if plates else {})
