"""The faults of the input: streams of records made of a stream of events."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from contracts.records.decode import Decoder
from contracts.records.record import Record, RecordError
from tests import hostile
from tests.faults.application import app
from tests.faults.load import Sent

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    Events = Iterator[Sent]
    Spoil = Callable[[random.Random, Events], Iterator[Sent]]

SIZES = 300_000, 900_000, 10_000_000
"""The first two are above the job's limit, the last one is above the broker's."""
HELD, LATE = 40, 0.2
"""How many events wait to be reordered, and the share of events that come after all others."""
AHEAD = {"ts": (timedelta(hours=2), timedelta(days=3650)), "first_seen": (timedelta(days=-3650),)}


def unchanged(_: random.Random, events: Events) -> Events:
    """Return the events."""
    return events


def wrong_clocks(chance: random.Random, events: Events) -> Events:
    """Add events of devices whose clock is two hours or ten years ahead, or ten years behind."""
    for event in events:
        yield event
        field = chance.choice(list(AHEAD))
        time = datetime.now(UTC) + chance.choice(AHEAD[field])
        yield _changed(event, **{field: time.isoformat(), "event_id": "wrong clock"})


def duplicates(_: random.Random, events: Events) -> Events:
    """Send each event twice, and every twentieth a hundred times."""
    for number, event in enumerate(events):
        yield from [event] * (2 if number % 20 else 100)


def reordered(chance: random.Random, events: Events) -> Events:
    """Change the order of the events, of all keys and partitions."""
    held: list[Sent] = []
    for event in events:
        held.append(event)
        if len(held) > HELD:
            yield held.pop(chance.randrange(len(held)))
    chance.shuffle(held)
    yield from held


def late(chance: random.Random, events: Events) -> Events:
    """Send some events after all others."""
    held: list[Sent] = []
    for event in events:
        if chance.random() < LATE:
            held.append(event)
        else:
            yield event
    yield from held


def hostile_json(_: random.Random, events: Events) -> Events:
    """Add records that Python's decoder refuses: Spark's must refuse the same."""
    for event in events:
        yield event
        for value in _hostile(event):
            if is_refused(event.key, value):
                yield Sent(event.key, value, is_refused=True)


def oversized(_: random.Random, events: Events) -> Events:
    """Add events of 0.3 and 0.9 MB, which are refused, and of 10 MB, which the broker does not take."""
    for number, event in enumerate(events):
        yield event
        if number % 20 == 0:
            yield from (_changed(event, event_id="large", padding="x" * size) for size in SIZES)


def without_key_or_value(_: random.Random, events: Events) -> Events:
    """Add tombstones, empty values, and events without a key or under the key of another device."""
    for event in events:
        yield event
        for key, value in ((event.key, None), (event.key, b""), (None, event.value), (b"another", event.value)):
            yield Sent(key, value, is_refused=is_refused(key, value))


def is_refused(key: bytes | None, value: bytes | None) -> bool:
    """Return whether Python's decoder refuses a record of now."""
    time_ms = int(datetime.now(UTC).timestamp() * 1000)
    try:
        Decoder(app).event(Record(app.topics.events, 0, 0, time_ms, key, value))
    except RecordError:
        return True
    return False


def _changed(event: Sent, **fields: str) -> Sent:
    return Sent(event.key, json.dumps(json.loads(event.value or b"") | fields).encode(), is_refused=True)


_LITERALS = itertools.cycle(hostile.LITERALS)
_OTHERS = itertools.cycle((*hostile.NO_EVENT, *hostile.TAILS))
FIELDS = ("value", "event_id", "ts", "first_seen", "device_id")


def _hostile(event: Sent) -> Iterator[bytes]:
    """Return some hostile records, others for each event."""
    fields, whole = json.loads(event.value or b""), event.value or b""
    for literal in itertools.islice(_LITERALS, 4):
        for field in FIELDS:
            yield json.dumps(fields | {field: "@@"}).encode().replace(b'"@@"', literal.encode())
    yield from itertools.islice(_OTHERS, 2)
    yield whole + next(_OTHERS)
    yield whole[: len(whole) // 2]
