"""The suite of `upgrade_query.py`, and the snapshots that its job would write. Each version can run it.

`cars` has one window of a key at a time, `hours` many.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple

from contracts import Application, Event, Latest, State, Suite, Topics
from contracts.model.named_state import QueryOptions
from contracts.wire import Snapshot

CARS, HOURS = "cars", "hours"
PARTITIONS, LIVE = 4, 30
"""Of each topic; and keys of each state that change."""
PARKED = 40_000
"""Cars that do not change: a store that starts empty takes seconds to read them."""
WINDOW = timedelta(hours=1)
FIRST = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - 20 * WINDOW
REPLAYED, NEW_EPOCH, NEW_WINDOW, MOST_WINDOWS = 0.05, 0.005, 0.01, 16
Order = tuple[str, int, int]
"""Window start, epoch and version."""
Window = tuple[str, str, str]
"""State, key and window start."""


class Seen(Event):
    """An event, of which there is none."""

    key: str
    ts: datetime
    lot: str | None = None


class Car(State, lifetime=timedelta(days=2)):
    """The state of a car."""

    lot: Annotated[str | None, Latest()]


class Hour(State, key="key", window=WINDOW, grace=timedelta(days=1)):
    """The state of a key in an hour."""

    lot: Annotated[str | None, Latest()]


def _application(name: str, state: type[State]) -> Application:
    topics = Topics(prefix=f"{name}.", partitions=PARTITIONS)
    query = QueryOptions(history=3, indexes=("state.lot",))
    return Application(name=name, event=Seen, state=state, topics=topics, query=query)


suite = Suite(_application(CARS, Car), _application(HOURS, Hour))


class WrittenSnapshot(NamedTuple):
    """A snapshot that the load writes."""

    state: str
    key: str
    started: datetime
    epoch: int
    version: int

    @property
    def order(self) -> Order:
        """The order among the snapshots of the key."""
        return text(self.started), self.epoch, self.version

    @property
    def window(self) -> Window:
        """The window of the snapshot."""
        return self.state, self.key, text(self.started)

    def snapshot(self) -> Snapshot:
        """Return the record."""
        at = self.started + timedelta(milliseconds=self.version)
        state = {"lot": f"lot {self.version % 3}"}
        return Snapshot(
            device_id=self.key, first_seen=self.started, epoch=self.epoch, version=self.version, as_of=at, state=state
        )


def text(time: datetime) -> str:
    """Return a window start as answers have it."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class Load:
    """Snapshots from a seed, and the last one of each window."""

    seed: int
    newest: dict[tuple[str, str], WrittenSnapshot] = field(default_factory=dict)
    """The newest window of each key, with its last snapshot."""
    windows: dict[Window, WrittenSnapshot] = field(default_factory=dict)
    """The last snapshot of each window; of `cars`, of the newest one."""
    settled: set[Window] = field(default_factory=set)
    """Windows that all instances have read."""

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def first(self) -> list[WrittenSnapshot]:
        """Return the first snapshots of all keys that change."""
        names = [(state, f"{state}/{number:02}") for state in (CARS, HOURS) for number in range(LIVE)]
        return [self._write(WrittenSnapshot(state, key, FIRST, 1, 1)) for state, key in names]

    def next(self) -> WrittenSnapshot:
        """Return the next snapshot: of a new version, epoch or window, or one that was written before."""
        last = self.newest[self._random.choice([*self.newest])]
        chance = self._random.random()
        if chance < REPLAYED:
            return last._replace(version=max(1, last.version - self._random.randint(0, 5)))
        if chance < REPLAYED + NEW_EPOCH:
            return self._write(last._replace(epoch=last.epoch + 1, version=1))
        if chance < REPLAYED + NEW_EPOCH + NEW_WINDOW and last.started < FIRST + MOST_WINDOWS * WINDOW:
            return self._write(last._replace(started=last.started + WINDOW, version=1))
        return self._write(last._replace(version=last.version + 1))

    def _write(self, written: WrittenSnapshot) -> WrittenSnapshot:
        former = self.newest.get((written.state, written.key))
        if former is not None and written.state == CARS:
            del self.windows[former.window]
        self.newest[written.state, written.key] = self.windows[written.window] = written
        return written
