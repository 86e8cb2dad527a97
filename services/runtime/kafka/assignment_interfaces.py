"""The protocols of a part that learns the assignment of its group, and decides itself which partitions it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from datetime import timedelta

    from contracts.records.record import Record
    from services.runtime.kafka.values import Partition


class StaticMembership(NamedTuple):
    """The place of an instance in a group. A process of the instance that starts takes it from an earlier one."""

    group: str
    instance: str
    topics: Collection[str]
    session: timedelta
    """An instance that is away for less time gets its partitions back at once; later the group assigns them anew."""


class StaticMember(Protocol):
    """A member of a group that reads nothing: the group only assigns partitions to it."""

    async def run(self, assigned: Callable[[Collection[Partition]], None]) -> None:
        """Stay a member until cancelled, and pass the whole assignment on at each change, without delaying it.

        Raises ConsumerFailedError, also if another process has taken the place: its detail has the word "fenced".
        """


class PartitionReader(Protocol):
    """Reads partitions in a thread of its own, without a group. They are added and removed while it reads.

    `work`, which it calls in that thread, calls all methods but `run`. They may raise an error of the client that
    passes by itself: the work ends with it, the reader logs it and calls the work again, which must call `replace`,
    or the records that were read are lost.
    """

    @property
    def is_stopping(self) -> bool:
        """Whether the thread stops: the work must not wait for the event loop then."""

    async def run(self, work: Callable[[], None]) -> None:
        """Call the work again and again until cancelled; when this returns, the last call has returned.

        Raises what the work raises, and ConsumerFailedError.
        """

    def add(self, partition: Partition, position: int | None) -> None:
        """Read the partition from this position; None: from its beginning."""

    def remove(self, partition: Partition) -> None:
        """Stop reading the partition."""

    def replace(self, positions: Mapping[Partition, int | None]) -> None:
        """Read these partitions from these positions, and no others."""

    def known_end(self, partition: Partition) -> int | None:
        """Return the end of the partition in the last answer of the broker; None if it is unknown."""

    def read(self, *, wait: bool) -> Iterator[Sequence[Record]]:
        """Yield a batch in pieces, in order within a partition; may wait briefly for the first.

        Raises ConsumerFailedError.
        """

    def ended(self) -> Mapping[Partition, int]:
        """Return the ends that the last batch has reached. An end need not have a record before it."""

    def lost(self) -> Mapping[Partition, int]:
        """Return the ends of the partitions that the last batch found not to have the record at their position."""
