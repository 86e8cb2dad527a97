"""What the service holds of a key, and what happens to it."""

from __future__ import annotations

from typing import NamedTuple

Order = tuple[int, int, int]
"""The beginning of the life, the epoch, and the version within both."""

made = tuple.__new__
"""Makes a NamedTuple at half of what it costs to call its class: this is done for every record."""


class Entry(NamedTuple):
    """One version of a key. Times are in milliseconds since 1970; `life` is 0 in a state without lives."""

    life: int
    epoch: int
    """0 where the records have none."""
    version: int
    event_time: int
    partition: int
    offset: int
    value: bytes
    """JSON, as it was on the topic."""

    @property
    def order(self) -> Order:
        """Of two entries of one key, the one with the greater order is the later; readers never go back in it."""
        return self.life, self.epoch, self.version

    @property
    def tag(self) -> str:
        """Names this version of the key: of ETags, and of events of a watch."""
        return f"{self.life}.{self.epoch}.{self.version}" if self.life or self.epoch else str(self.version)


class Change(NamedTuple):
    """A key has a new entry, which readers can see already; None: it was removed by a record without value."""

    state: str
    key: str
    entry: Entry | None
