"""The store of a sink: what it gets, and what it does with it. Times are in microseconds since 1970."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

RowOrder = tuple[int, int, int, int]
"""Start of the window, epoch, version, source."""
RowKey = tuple[str, int]
"""Key and start of the window; 0 for the latter with `Windows.NEWEST`."""


class Windows(StrEnum):
    """The windows of a key that have a row in the store."""

    NEWEST = "newest"
    """One row of a key, of its newest window."""
    ALL = "all"
    """A row of each window of a key."""


@dataclass(frozen=True)
class Target:
    """The destination of the records of one state in a store."""

    name: str
    """The name of the table, or the prefix of the keys: STATELOOP_SINK_PREFIX and the name of the state."""
    topic: str
    """The topic of the records. Positions are positions in this topic: each topic of a name has its own."""
    windows: Windows
    """The windows that have a row. They determine the identity of a row, `Row.row_key`."""


class Row(NamedTuple):
    """A value of a key, and the record that it comes from. `window_start` is 0 in a state without windows."""

    key: str
    window_start: int
    epoch: int
    version: int
    event_time: int
    value: bytes
    """JSON, as it was on the topic."""
    expires_at: int | None
    partition: int
    offset: int
    source: int = 0
    """A number of the device that a derived value comes from; 0 in other states."""

    @property
    def order(self) -> RowOrder:
        """The order of rows with the same row key: the greater one is newer."""
        return self.window_start, self.epoch, self.version, self.source

    def row_key(self, windows: Windows) -> RowKey:
        """The identity of the row in its store."""
        return self.key, self.window_start if windows is Windows.ALL else 0


class Deletion(NamedTuple):
    """Removes the row of a key if it is of this window; of any window if that is None, which `Windows.ALL` excludes."""

    key: str
    window_start: int | None


class Step(NamedTuple):
    """Deletions, and then rows, each of another row key."""

    deletions: tuple[Deletion, ...]
    rows: tuple[Row, ...]


class Move(NamedTuple):
    """The position of a partition changes from `expected` to `position`. A partition without a position is at 0."""

    expected: int
    position: int


class RowBatch(NamedTuple):
    """The effect of some records of the topic. All records before `position` of each partition have had theirs then."""

    steps: tuple[Step, ...]
    moves: Mapping[int, Move]
    """The moves by the number of the partition."""


class SinkStore(Protocol):
    """A store of one target. One task uses it; other processes may use the same target at the same time.

    Every method raises StoreUnavailableError when a repetition may succeed. `open` is called before the first use, and
    again after each such error.
    """

    async def open(self) -> None:
        """Connect, and check the target, or create it without positions. Raises StoreMismatchError."""
        ...

    async def positions(self) -> Mapping[int, int]:
        """Return the position of each partition that has one.

        It belongs to the present rows: when all rows are removed at once, as with a dropped table, the positions are
        gone too. The sink then writes the records again.
        """
        ...

    async def write(self, batch: RowBatch) -> int:
        """Apply a batch atomically, so that it survives what the store survives; return the number of changed rows.

        The steps are applied in their order. A row replaces one of the same row key only if its order is greater.
        Raises PositionConflictError if a partition is not at the position that its move expects, and RowsRefusedError
        for rows that can never be written; nothing of the batch is applied then.
        """
        ...

    async def remove_expired(self, now: int) -> int:
        """Remove rows whose `expires_at` is not after `now`; return how many, 0 if the store does it by itself."""
        ...

    async def close(self) -> None:
        """Close the connection; without one, nothing."""
        ...


StoreFactory = Callable[[str, Target], SinkStore]
"""Makes a store from a URL, which may contain a password, and a target. It does not connect."""
