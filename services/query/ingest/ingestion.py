"""The interface of ingest: which partitions to read, how far each is read, and who is notified of changes.

The consumer of ingest is in no group. A separate member of the consumer group learns the assignment, and the cluster
assigns partitions here, for an owner and for a replica alike. So a replica that becomes the owner goes on without a
seek.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from services.query.store import Change, StatePartition


class ReadProgress(NamedTuple):
    """How far a partition is read."""

    position: int
    """The offset of the first record that readers do not see yet."""
    end: int | None
    """The partition's end offset in the last response of the broker; None before the first."""

    @property
    def lag(self) -> int:
        """The number of records between position and end; 0 until the end is known."""
        return max(0, (self.end or 0) - self.position)


class Restart(NamedTuple):
    """A partition that is read from the topic's beginning again."""

    partition: StatePartition
    is_other_topic: bool
    """Whether its topic ends before the position: it was created again, and its offsets are not those of before."""


class ChangeListener(Protocol):
    """Receives what ingest did, always on the event loop."""

    def changed(self, changes: Sequence[Change]) -> None:
        """Receive changes that readers can see since just now, in their order."""

    def restarted(self, restart: Restart) -> None:
        """Receive a partition that is cleared as soon as this returns, and read again from the topic's beginning.

        This happens when the topic no longer has the record at the position. What the store returns for the
        partition's keys is wrong until it has caught up again.
        """


class ChangeListeners:
    """A ChangeListener that calls others, in the order in which they were added."""

    def __init__(self) -> None:
        self.on_changed: list[Callable[[Sequence[Change]], None]] = []
        self.on_restarted: list[Callable[[Restart], None]] = []

    def changed(self, changes: Sequence[Change]) -> None:
        """See `ChangeListener.changed`."""
        for listener in self.on_changed:
            listener(changes)

    def restarted(self, restart: Restart) -> None:
        """See `ChangeListener.restarted`."""
        for listener in self.on_restarted:
            listener(restart)


class Ingestion(Protocol):
    """Reads topics into the stores. Called from the event loop; only the coroutines take time."""

    def assign(self, partition: StatePartition) -> None:
        """Read the partition from the store's position, or from its beginning if the store has nothing of it."""

    def unassign(self, partition: StatePartition) -> None:
        """Stop reading the partition. The store keeps its entries and position."""

    def progress(self, partition: StatePartition) -> ReadProgress | None:
        """Return how far the partition is read; None if it is not assigned, or not started yet."""

    async def end_offsets(self, partitions: Collection[StatePartition]) -> dict[StatePartition, int]:
        """Request the current end offsets from the brokers; partitions without a response in time are left out.

        A partition whose position reaches this offset has all that any client can have read when this was called.
        """
        ...

    async def growing(self, states: Collection[str]) -> Collection[str]:
        """Return those of the states whose topics have another number of partitions than is in use.

        Their records may have been moved to other partitions. Those without a response in time are returned too.
        """
        ...

    async def run(self) -> None:
        """Read until cancelled. Raises what it cannot recover from, such as a full disk."""
