"""A model of the job that fills the topic of a state, and what the topic has given each key after each record."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from contracts import Application, Event, Latest, State, Topics
from contracts.model.named_state import QueryOptions
from contracts.records.named_states import named
from contracts.wire import Snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import window_key
from services.query.store.buckets import milliseconds, time_buckets
from services.runtime.job_progress import JobProgress
from services.runtime.kafka.values import Output, Partition
from tests.simulation.script import START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from contracts.model.named_state import NamedState
    from services.query.store.entry import EntryOrder
    from services.runtime.kafka.interfaces import Admin
    from tests.simulation.instances.script import Written
    from tests.simulation.kafka.broker import Broker

MOST_PARTITIONS = 4
STEP = timedelta(minutes=5)
"""From one window of a key to the next."""
FIRST_MS = round(START.timestamp() * 1000)
BEFORE_ALL = (-1, 0, 0)


class Seen(Event):
    plate: str | None = None


class Car(State, lifetime=timedelta(days=1)):
    plate: Annotated[str | None, Latest()]


class Visits(State, window=timedelta(minutes=10), every=STEP):
    plate: Annotated[str | None, Latest()]


SHORT, SKEW = timedelta(seconds=5), timedelta(seconds=1)
"""From one window of a key to the next where windows expire within a script, and the skew of its devices."""
REMEMBERED = timedelta(seconds=14)
"""No multiple of SHORT: some windows begin between what records expire, and what they expired without lateness."""


class Trip(State, lifetime=4 * SHORT, grace=timedelta(seconds=2)):
    plate: Annotated[str | None, Latest()]


class Shift(State, window=2 * SHORT, every=SHORT, grace=timedelta(seconds=2)):
    plate: Annotated[str | None, Latest()]


def _application(name: str, state: type[State], **options: Any) -> Application:
    return Application(name=name, event=Seen, state=state, topics=Topics(partitions=MOST_PARTITIONS), **options)


PLATE = "state.plate"
"""The path of the field by which keys are found."""
HISTORY = 2
"""The number of versions that are kept."""
BY_PLATE = QueryOptions(indexes=(PLATE,), history=HISTORY)
APPLICATIONS = {
    "cars": _application("cars", Car, query=BY_PLATE),
    "visits": _application("visits", Visits, query=BY_PLATE),
    "trips": _application("trips", Trip, skew=SKEW, query=BY_PLATE),
    "shifts": _application("shifts", Shift, skew=SKEW, query=replace(BY_PLATE, remember=REMEMBERED)),
}
"""By name: one window of a key at a time, and windows that overlap; and the same with windows that expire."""


@cache
def state_of(name: str) -> NamedState:
    """Return the state of an application. Its schema takes a while."""
    application = APPLICATIONS[name]
    return named(application)[application.name]


def plate(order: EntryOrder) -> str:
    """Return the value of the field in a version."""
    return f"p{order[2] % 2}"


class Expiry(NamedTuple):
    """When windows expire, in milliseconds: `kept` after they start by the watermark, which is `late` behind the clock.

    The record of a window moves the watermark too, to `lateness` before the window's start. A window closes `closed`
    after its start by the progress of the job; 0: it does not close.
    """

    kept: int
    forgotten: int
    """From its start until a window may not be known any more."""
    late: int
    lateness: int
    closed: int

    def must_be_closed(self, start: int, time_ms: int) -> bool:
        """Return whether a window is closed by the progress that the job recorded at a time."""
        return self.closed > 0 and start + self.closed <= time_ms

    def may_have(self, start: int, now_ms: int, newest: int, kept: int) -> bool:
        """Return whether a window may be older than `kept`, by the clock or by the newest window of all keys."""
        return start < max(now_ms - self.late, newest - self.lateness) - kept

    def must_have(self, start: int, now_ms: int) -> bool:
        """Return whether a window has expired by the clock."""
        return start < now_ms - self.late - self.kept


def expiry_of(state: NamedState) -> Expiry:
    """Return when windows of a state expire."""
    buckets, late = time_buckets(state), milliseconds(state.grace)
    closed = 0 if state.window is None else milliseconds(state.window) + late
    return Expiry(buckets.lifetime, buckets.remembered, late, buckets.lateness, closed)


class WindowRecord(NamedTuple):
    """A record of a window of a key; `order` is None of a tombstone."""

    start: int
    order: EntryOrder | None


class KeyHistory:
    """What a reader of all records has of a key, after each of them: the order of the newest window, None of none."""

    def __init__(self, now: Callable[[], float], *, has_windows: bool) -> None:
        self._now = now
        self._has_windows = has_windows
        self._present: dict[int, EntryOrder] = {}
        self.starts: set[int] = set()
        """The starts of all windows that it ever had."""
        self.states: list[EntryOrder | None] = [None]
        self.times = [0.0]
        """The time of each state."""
        self.offsets = [-1]
        """The offset of the record that gave each state; -1 without a record."""
        self.windows_then: list[Mapping[int, EntryOrder]] = [{}]
        """The order of each window, in each state."""

    @property
    def windows(self) -> list[int]:
        """The starts of the windows that it has, in their order."""
        return sorted(self._present)

    def add(self, record: WindowRecord, offset: int) -> None:
        """Add the record at an offset."""
        start, order = record
        self.starts.add(start)
        if order is None:
            self._present.pop(start, None)
        elif self._has_windows:
            self._present[start] = max(order, self._present.get(start, order))
        elif order > max(self._present.values(), default=BEFORE_ALL):
            self._present = {start: order}
        self._note(offset)

    def clear(self) -> None:
        """Lose all records, with the topic."""
        self._present = {}
        self._note(-1)

    def _note(self, offset: int) -> None:
        self.states.append(max(self._present.values(), default=None))
        self.times.append(self._now())
        self.offsets.append(offset)
        self.windows_then.append(dict(self._present))


class Job:
    """Writes records to the topic."""

    def __init__(self, name: str, partitions: int, broker: Broker, admin: Admin) -> None:
        application = APPLICATIONS[name]
        self._topic = application.topics.snapshots
        self.has_windows = application.state.is_windowed
        self.expiry = expiry_of(state_of(name))
        self.newest = 0
        """The start of the newest window of all keys."""
        is_short = application.state.lifetime <= 4 * SHORT
        self._step_ms, self._is_short = milliseconds(SHORT if is_short else STEP), is_short
        self.partitions = partitions
        """The number by which it places keys."""
        self._broker = broker
        self._epoch = 1
        self._versions: dict[str, dict[int, tuple[int, int]]] = {}
        """The last epoch and version of each window of each key, also of removed ones."""
        self._written: dict[str, list[WindowRecord]] = {}
        self._repeating: dict[str, list[WindowRecord]] = {}
        """The records of each key that the job writes once more."""
        self.is_stopped = False
        self._lost: dict[str, list[int]] = {}
        """The windows that it had when it was stopped."""
        self._progress = JobProgress(admin, self._topic)
        self._progress_ms = 0
        """The time up to which windows have closed."""
        self.histories: dict[str, KeyHistory] = {}
        self.last_versions: dict[tuple[str, int, int], int] = {}
        """The last version of each window of a key in each epoch."""

    def write(self, step: Written) -> None:
        """Write a record, unless the job is stopped, or repeats records of the key."""
        if self.is_stopped or step.key in self._repeating:
            return
        versions = self._versions.setdefault(step.key, {})
        first = self._broker.now_ms // self._step_ms * self._step_ms if self._is_short else FIRST_MS
        newest = max(versions, default=first)
        if step.kind == "removed":
            for start in sorted(versions)[-1:] if self.has_windows else sorted(versions):
                self._record(step.key, WindowRecord(start, None))
        else:
            if step.kind == "window":
                newest = max(first, newest + self._step_ms)
            self._record_version(step.key, first if self._is_closed(newest) or not self._has(newest) else newest)

    def repeats(self, step: Written) -> Iterator[Callable[[], None]]:
        """Return what writes the last records of a key once more, each. Until the last it writes no others of the key.

        A job that starts again repeats all that followed its last commit before it goes on.
        """
        if self.is_stopped or step.key in self._repeating:
            return
        last = self._written.get(step.key, [])[-step.count :]
        if records := [one for one in last if not self._is_closed(one.start)]:
            self._repeating[step.key] = records
            yield from [partial(self._repeat, step.key)] * len(records)

    def _repeat(self, key: str) -> None:
        if records := self._repeating.get(key):
            self._append(key, records.pop(0))
            if not records:
                del self._repeating[key]

    def rebuild(self) -> None:
        """Write all present windows anew, in a later epoch: the former job ends, and repeats nothing."""
        present = self._present()
        self.is_stopped = False
        self._epoch += 1
        self._written, self._repeating = {}, {}
        for key, starts in present.items():
            for start in filter(self._has, starts):
                self._record_version(key, start)

    def grow(self, partitions: int) -> None:
        """Place keys by more partitions from now on, and write all windows anew, as a rebuilt job."""
        self.partitions = partitions
        self.rebuild()

    def record_progress(self) -> None:
        """Record that windows are closed for which it has written everything. It is not far enough while it repeats."""
        if not (self.is_stopped or self._repeating):
            self._progress_ms = self._broker.now_ms
            logs = self._broker.topics.topic(self._topic).logs
            self._progress.record(
                datetime.fromtimestamp(self._progress_ms / 1000, UTC),
                self._epoch,
                {number: log.end for number, log in enumerate(logs)},
            )

    def finish_repeats(self) -> None:
        """Write at once what it repeats: where it is killed before, the next job does, and nothing is compacted yet."""
        for key in list(self._repeating):
            while key in self._repeating:
                self._repeat(key)

    def stop(self) -> None:
        """Write nothing until `rebuild`, not even what it repeats."""
        self._lost = self._present()
        self.is_stopped = True
        self._written, self._repeating = {}, {}

    def lose_topic(self) -> None:
        """Note that the topic is empty, and stop until `rebuild`, which writes what it had."""
        self.stop()
        for history in self.histories.values():
            history.clear()

    def _present(self) -> dict[str, list[int]]:
        if self.is_stopped:
            return self._lost
        return {key: history.windows for key, history in self.histories.items()}

    def _has(self, start: int) -> bool:
        """Return whether the job still has the window."""
        return not self.expiry.must_have(start, self._broker.now_ms)

    def _is_closed(self, start: int) -> bool:
        return self.expiry.must_be_closed(start, self._progress_ms)

    def _record_version(self, key: str, start: int) -> None:
        epoch, version = self._versions[key].get(start, (self._epoch, 0))
        version = version + 1 if epoch == self._epoch else 1
        self._versions[key][start] = self._epoch, version
        self.last_versions[key, start, self._epoch] = version
        self._record(key, WindowRecord(start, (start, self._epoch, version)))

    def _record(self, key: str, record: WindowRecord) -> None:
        self.newest = max(self.newest, record.start)
        self._written.setdefault(key, []).append(record)
        self._append(key, record)

    def _append(self, key: str, record: WindowRecord) -> None:
        value = None if record.order is None else _snapshot(key, record.order)
        place = Partition(self._topic, partition(key.encode(), self.partitions))
        offset = self._broker.append(place, Output(self._topic, window_key(key, _time(record.start)), value))
        self.histories[key].add(record, offset)


def _time(milliseconds: int) -> datetime:
    return START + timedelta(milliseconds=milliseconds - FIRST_MS)


def _snapshot(key: str, order: EntryOrder) -> bytes:
    start, epoch, version = order
    found = Snapshot(
        device_id=key, first_seen=_time(start), epoch=epoch, version=version, as_of=START, state={"plate": plate(order)}
    )
    return found.encode()
