"""The entry of a key: one version of its value, and where it came from."""

from __future__ import annotations

from typing import NamedTuple

EntryOrder = tuple[int, int, int]
"""Window start, epoch, and the version within both."""

make_tuple = tuple.__new__
"""Makes a NamedTuple at half the cost of calling its class; used once per record."""


class StatePartition(NamedTuple):
    """A partition of a named state, by the number that it has in the state's topic."""

    state: str
    number: int


class Entry(NamedTuple):
    """One version of a key. Times are in milliseconds since 1970; `window_start` is 0 in a state without windows."""

    window_start: int
    epoch: int
    """0 where the records have none."""
    version: int
    event_time: int
    partition: int
    offset: int
    value: bytes
    """JSON, as it was on the topic."""

    @property
    def order(self) -> EntryOrder:
        """The sort key of a key's entries: the entry with the greatest order is the current one."""
        return self.window_start, self.epoch, self.version

    @property
    def tag(self) -> str:
        """The version tag of this entry, used in ETags and as the id of watch events."""
        if self.window_start or self.epoch:
            return f"{self.window_start}.{self.epoch}.{self.version}"
        return str(self.version)


class Change(NamedTuple):
    """A change of a key that readers already see: its new entry, or None if a tombstone deleted it."""

    state: str
    key: str
    entry: Entry | None
    window_start: int | None = None
    """The window that the tombstone deleted; None in a state that is not windowed."""


class Update(NamedTuple):
    """One decoded record of a topic: the key's new entry, or None for a tombstone.

    `window_start` is that of the window that a tombstone deletes; None deletes the key whatever its window is.
    """

    key: str
    partition: int
    offset: int
    entry: Entry | None
    window_start: int | None = None
