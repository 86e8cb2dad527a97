"""A model of the job that fills the topic of a state, and what the topic has given each key after each record."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

from contracts import Application, Event, Latest, State, Topics
from contracts.wire import Snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import window_key
from services.runtime.kafka.values import Output, Partition
from tests.simulation.script import START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from services.query.store.entry import EntryOrder
    from tests.simulation.instances.script import Written
    from tests.simulation.kafka.broker import Broker

MOST_PARTITIONS = 4
STEP = timedelta(minutes=5)
"""From one window of a key to the next."""
STEP_MS = round(STEP.total_seconds() * 1000)
FIRST_MS = round(START.timestamp() * 1000)
BEFORE_ALL = (-1, 0, 0)


class Seen(Event):
    plate: str | None = None


class Car(State, lifetime=timedelta(days=1)):
    plate: Annotated[str | None, Latest()]


class Visits(State, window=timedelta(minutes=10), every=STEP):
    plate: Annotated[str | None, Latest()]


def _application(name: str, state: type[State]) -> Application:
    return Application(name=name, event=Seen, state=state, topics=Topics(partitions=MOST_PARTITIONS))


APPLICATIONS = {"cars": _application("cars", Car), "visits": _application("visits", Visits)}
"""By name: one window of a key at a time, and windows that overlap."""


class WindowRecord(NamedTuple):
    """A record of a window of a key; `order` is None of a tombstone."""

    start: int
    order: EntryOrder | None


class KeyHistory:
    """What a reader of all records has of a key, after each of them: the order of the newest window, None of none."""

    def __init__(self, *, has_windows: bool) -> None:
        self._has_windows = has_windows
        self._present: dict[int, EntryOrder] = {}
        self.states: list[EntryOrder | None] = [None]

    @property
    def windows(self) -> list[int]:
        """The starts of the windows that it has, in their order."""
        return sorted(self._present)

    def add(self, record: WindowRecord) -> None:
        """Add a record."""
        start, order = record
        if order is None:
            self._present.pop(start, None)
        elif self._has_windows:
            self._present[start] = max(order, self._present.get(start, order))
        elif order > max(self._present.values(), default=BEFORE_ALL):
            self._present = {start: order}
        self._note()

    def clear(self) -> None:
        """Lose all records, with the topic."""
        self._present = {}
        self._note()

    def _note(self) -> None:
        self.states.append(max(self._present.values(), default=None))


class Job:
    """Writes records to the topic."""

    def __init__(self, application: Application, partitions: int, broker: Broker) -> None:
        self._topic = application.topics.snapshots
        self.has_windows = application.state.is_windowed
        self._partitions = partitions
        self._broker = broker
        self._epoch = 1
        self._versions: dict[str, dict[int, tuple[int, int]]] = {}
        """The last epoch and version of each window of each key, also of removed ones."""
        self._written: dict[str, list[WindowRecord]] = {}
        self._repeating: dict[str, list[WindowRecord]] = {}
        """The records of each key that the job writes once more."""
        self._is_stopped = False
        self.histories: dict[str, KeyHistory] = {}

    def write(self, step: Written) -> None:
        """Write a record, unless the job is stopped, or repeats records of the key."""
        if self._is_stopped or step.key in self._repeating:
            return
        versions = self._versions.setdefault(step.key, {})
        newest = max(versions, default=FIRST_MS)
        if step.kind == "removed":
            for start in sorted(versions)[-1:] if self.has_windows else sorted(versions):
                self._record(step.key, WindowRecord(start, None))
        else:
            self._record_version(step.key, newest + STEP_MS * (step.kind == "window"))

    def repeats(self, step: Written) -> Iterator[Callable[[], None]]:
        """Return what writes the last records of a key once more, each. Until the last it writes no others of the key.

        A job that starts again repeats all that followed its last commit before it goes on.
        """
        if self._is_stopped or step.key in self._repeating or not (records := self._written.get(step.key)):
            return
        self._repeating[step.key] = list(records[-step.count :])
        for _ in self._repeating[step.key]:
            yield partial(self._repeat, step.key)

    def _repeat(self, key: str) -> None:
        if records := self._repeating.get(key):
            self._append(key, records.pop(0))
            if not records:
                del self._repeating[key]

    def rebuild(self) -> None:
        """Write all present windows anew, in a later epoch."""
        self._is_stopped = False
        self._epoch += 1
        for key, starts in self._present().items():
            for start in starts:
                self._record_version(key, start)

    def lose_topic(self) -> None:
        """Note that the topic is empty, and stop until `rebuild`, which writes what it had."""
        self._lost = self._present()
        self._is_stopped = True
        self._written, self._repeating = {}, {}
        for history in self.histories.values():
            history.clear()

    def _present(self) -> dict[str, list[int]]:
        if self._is_stopped:
            return self._lost
        return {key: history.windows for key, history in self.histories.items()}

    def _record_version(self, key: str, start: int) -> None:
        epoch, version = self._versions[key].get(start, (self._epoch, 0))
        version = version + 1 if epoch == self._epoch else 1
        self._versions[key][start] = self._epoch, version
        self._record(key, WindowRecord(start, (start, self._epoch, version)))

    def _record(self, key: str, record: WindowRecord) -> None:
        self._written.setdefault(key, []).append(record)
        self._append(key, record)

    def _append(self, key: str, record: WindowRecord) -> None:
        value = None if record.order is None else _snapshot(key, record.order)
        place = Partition(self._topic, partition(key.encode(), self._partitions))
        self._broker.append(place, Output(self._topic, window_key(key, _time(record.start)), value))
        self.histories[key].add(record)


def _time(milliseconds: int) -> datetime:
    return START + timedelta(milliseconds=milliseconds - FIRST_MS)


def _snapshot(key: str, order: EntryOrder) -> bytes:
    start, epoch, version = order
    found = Snapshot(device_id=key, first_seen=_time(start), epoch=epoch, version=version, as_of=START, state={})
    return found.encode()
