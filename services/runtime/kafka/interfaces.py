"""The protocols of Kafka's clients. `values` has what they take and return.

A part that takes one of these runs with a broker, or with a model of one. The asynchronous protocols are for an event
loop; the methods of the others block their thread, and one thread at a time uses a client, but any thread an `Admin`.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from services.runtime.errors import KafkaRequestError

if TYPE_CHECKING:
    import asyncio
    import logging
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from contracts.records.record import Record
    from services.runtime.kafka.assignment_interfaces import PartitionReader, StaticMember, StaticMembership
    from services.runtime.kafka.values import (
        BoundedRange,
        GroupOffset,
        NewTopic,
        OffsetAt,
        OffsetRange,
        Output,
        Partition,
        TopicInfo,
    )
    from services.runtime.topic_check import TopicCheck


class Producer(Protocol):
    """Writes records from an event loop."""

    def send(self, outputs: Sequence[Output]) -> Awaitable[Sequence[int]]:
        """Write records, in the order of the calls; the future has their offsets when all in-sync replicas have them.

        While the queue of the client is full, the records wait for room. Those of a cancelled future that still wait
        are dropped. The future raises DeliveryFailedError, after all of its records are acknowledged or dropped.
        """

    def drop_unsent(self) -> None:
        """Drop the records that the client has not sent: their `send` raises DeliveryFailedError."""

    async def close(self) -> None:
        """Wait some seconds for the records in flight, and close the client."""


class BlockingProducer(Protocol):
    """Writes records from a thread."""

    def send(self, outputs: Iterable[Output]) -> Sequence[int]:
        """Write records, and return their offsets when all in-sync replicas have them.

        Raises DeliveryFailedError, also of a record of an earlier `enqueue`.
        """

    def enqueue(self, output: Output) -> None:
        """Write a record without waiting for its acknowledgement; wait while the queue of the client is full.

        Raises DeliveryFailedError, of this record or of an earlier one.
        """

    def flush(self, within_s: float | None = None) -> int:
        """Wait until all in-sync replicas have the records, or for this time; return the number of the others.

        Raises DeliveryFailedError.
        """


class TransactionalProducer(Protocol):
    """Writes records in transactions, from a thread. Readers see all records of a transaction, or none."""

    def begin(self) -> None:
        """Begin a transaction. Raises KafkaRequestError."""

    def enqueue(self, output: Output) -> None:
        """Write a record in the transaction. Raises DeliveryFailedError."""

    def commit(self, group_offsets: Mapping[Partition, GroupOffset] | None = None) -> None:
        """Commit the transaction, with offsets of the producer's group. Raises KafkaRequestError."""

    def abort(self) -> None:
        """Abort the transaction. Raises KafkaRequestError."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin a transaction, and commit it at the end of the block, or abort it after an error.

        Raises KafkaRequestError.
        """
        self.begin()
        try:
            yield
        except BaseException:
            with suppress(KafkaRequestError):  # the next producer of this id aborts it too
                self.abort()
            raise
        self.commit()


class TopicSubscription(NamedTuple):
    """What a member of a group reads."""

    group: str
    topic: str
    batch: int
    """The number of records that it receives at once."""
    drain: timedelta
    """The time for which a revoked partition waits for the work in progress."""
    check: TopicCheck
    """The check of the topics that must exist. The client lists them for it."""
    options: Mapping[str, Any]
    """The options of the client, which replace those of all clients."""


class RebalanceListener(Protocol):
    """Receives the events of a member of a group, always in the event loop."""

    def on_assigned(self, partitions: list[int]) -> None:
        """Handle the assignment of these partitions."""

    async def on_revoked(self, partitions: list[int]) -> dict[int, int]:
        """Finish what can be finished soon of partitions that are being revoked; return the positions to commit."""

    def on_lost(self, partitions: list[int]) -> None:
        """Handle the loss of these partitions: another worker may have them already."""

    def on_committed(self, positions: dict[int, int]) -> None:
        """The broker confirmed these positions."""

    def on_error(self) -> None:
        """Kafka had a transient error."""


class GroupConsumer(Protocol):
    """Reads a topic from an event loop, as a member of a group."""

    def subscribe(self, listener: RebalanceListener, loop: asyncio.AbstractEventLoop) -> None:
        """Join the group. From now on `fetch` must be called regularly, or the group revokes the partitions."""

    async def fetch(self, *, paused: bool, full: Collection[int], positions: Mapping[int, int]) -> list[Record]:
        """Commit these positions in the background, and return the next records, after at most 0.1 s.

        While paused it returns none and does not wait, but remains a member of the group; it skips the full partitions.
        Raises ConsumerFailedError, and TopicsMissingError at the start.
        """

    async def seek(self, positions: Mapping[int, int]) -> Collection[int]:
        """Read these partitions from these offsets on; 0 is the beginning. Return the partitions that it has set.

        What `fetch` returns afterwards is of the new positions. A partition that was assigned just now may not be set.
        """

    async def next_offsets(self, partitions: Collection[int]) -> Mapping[int, int]:
        """Return the offset from which each of these is read on, 0 for the beginning; none of which it is unknown."""

    async def lag(self) -> int:
        """Return the number of unread records in the assigned partitions."""

    def problem(self) -> str | None:
        """Return why the worker can read or write nothing without an operator's action; None without such a problem."""

    async def close(self) -> None:
        """Leave the group."""


class FencedGroupConsumer(GroupConsumer, Protocol):
    """A member of a group whose outputs must not replace the outputs of a later owner of a partition."""

    def proven_at(self, partition: int) -> float:
        """Return when this member was last known to own a partition; minus infinity if it does not."""

    async def prove(self, partition: int, position: int) -> bool:
        """Commit a position, and return whether the group has accepted that, which is a proof.

        `fetch` must be called meanwhile. While the broker is away this waits.
        """


class TopicReader(Protocol):
    """Reads partitions from an event loop, without a group."""

    async def partitions(self, topics: Collection[str]) -> Sequence[Partition]:
        """Return the partitions of these topics; none of a topic that does not exist. Raises TopicReadError."""

    async def bounds(self, partitions: Collection[Partition]) -> Mapping[Partition, BoundedRange]:
        """Return the first and the end offset of each partition. Raises TopicReadError."""

    def read(self, ranges: Mapping[Partition, OffsetRange]) -> AsyncIterator[Sequence[Record]]:
        """Yield the records of these ranges as `BlockingTopicReader.read` does, until the generator is closed."""

    async def at(self, partition: Partition, offsets: Sequence[int], is_wanted: Callable[[], bool]) -> Sequence[Record]:
        """Return single records as `BlockingTopicReader.at` does. `is_wanted` is called in another thread."""

    async def close(self) -> None:
        """End the current call, and close the client."""


class BlockingTopicReader(Protocol):
    """Reads partitions from a thread, without a group."""

    def partitions(self, topics: Collection[str]) -> Sequence[Partition]:
        """Return the partitions of these topics; none of a topic that does not exist. Raises TopicReadError."""

    def bounds(self, partitions: Collection[Partition], within_s: float = 10.0) -> Mapping[Partition, BoundedRange]:
        """Return the first and the end offset of each partition, waiting this long for leaders of new ones.

        The end is the end of committed transactions. Raises TopicReadError.
        """

    def bounds_since(self, partitions: Collection[Partition], time: datetime) -> Mapping[Partition, BoundedRange]:
        """Return the offset of the first record of this time or a later one, and the end offset, of each partition.

        Both are the end offset in a partition without such a record. Raises TopicReadError.
        """

    def read(
        self, ranges: Mapping[Partition, OffsetRange], is_stopping: Callable[[], bool] = lambda: False
    ) -> Iterator[Sequence[Record]]:
        """Yield the records of these ranges, in order within a partition, until all ends are reached or it stops.

        It yields an empty sequence when no record comes for a moment. The end is reached although its last record was
        compacted away, or is the marker of a transaction. The first offset that the partition has replaces a start
        that it does not have, also one behind its end. While the broker is away it waits. Raises TopicReadError, also
        if a partition stays shorter than its range, as after a recreation of its topic.
        """

    def poll(self, within_s: float = 0.0) -> Sequence[Record]:
        """Return the records behind the ranges of the last `read`, waiting this long for the first one.

        Raises TopicReadError.
        """

    def at(
        self, partition: Partition, offsets: Sequence[int], is_wanted: Callable[[], bool] = lambda: True
    ) -> Sequence[Record]:
        """Return the records at these ascending offsets, without those that the partition no longer has.

        While the broker is away it waits; it returns early when `is_wanted` returns False. Calls with near offsets are
        cheap. Raises TopicReadError, also if the partition stays shorter than these offsets.
        """

    def stop(self) -> None:
        """Read no further: the client fetches nothing more."""

    def close(self) -> None:
        """Close the client."""


class Admin(Protocol):
    """Administers topics and the offsets of groups. Its methods block, and raise KafkaRequestError."""

    def partition_counts(self, topics: Collection[str] | None = None, within_s: float = 10.0) -> Mapping[str, int]:
        """Return the number of partitions of those of these topics that this user may see, or of all that it may see.

        A new topic may be listed later.
        """

    def describe(self, topics: Collection[str]) -> Mapping[str, TopicInfo]:
        """Return the identity of each topic."""

    def configs(self, topics: Collection[str], within_s: float = 10.0) -> Mapping[str, Mapping[str, str]]:
        """Return the settings of each topic."""

    def create(self, topics: Collection[NewTopic]) -> Collection[str]:
        """Create topics, and return the names of those that did not exist."""

    def grow(self, partition_counts: Mapping[str, int]) -> None:
        """Add partitions to topics until they have these numbers."""

    def alter(self, topic: str, config: Mapping[str, str]) -> None:
        """Change settings of a topic. The broker applies them after it has answered."""

    def delete_records(self, ends: Mapping[Partition, int]) -> None:
        """Delete the records before these offsets."""

    def offsets(self, at: Mapping[Partition, int], within_s: float = 10.0) -> Mapping[Partition, int]:
        """Return the first offset of each partition whose record has this time, in milliseconds, or a later one.

        It is LATEST where there is none. EARLIEST and LATEST, as times, give the first offset, and the end offset of
        committed transactions. It waits this long for the leaders of new partitions.
        """

    def available_offsets(self, at: Mapping[Partition, int], within_s: float = 10.0) -> Mapping[Partition, int]:
        """Return the same, without the partitions that have no leader now, or whose leader does not answer in time.

        Those of other leaders do not wait for a leader that is missing.
        """

    def records(self, at: Mapping[Partition, int], within_s: float = 10.0) -> Mapping[Partition, OffsetAt]:
        """Return offsets as `offsets` does, with the times of the records; NEWEST gives the record of the latest time.

        The offset is negative where there is no such record. The end offset counts all records, also the records of
        open transactions.
        """

    def committed(
        self, group: str, partitions: Collection[Partition], within_s: float = 10.0
    ) -> Mapping[Partition, GroupOffset]:
        """Return the committed offset of each partition; a negative one where there is none."""

    def commit(self, group: str, offsets: Mapping[Partition, GroupOffset], within_s: float = 10.0) -> bool:
        """Commit offsets for a group; return False if it has members, as only these may commit then."""

    def commit_async(self, group: str, offsets: Mapping[Partition, GroupOffset]) -> None:
        """Commit offsets for a group without waiting for the answer: a broker's refusal is not reported."""

    def close(self) -> None:
        """Close the clients."""


class Kafka(Protocol):
    """Makes the clients of a process. `name` is the client id that brokers and logs show.

    A reader with a `log` logs the errors that may pass by themselves, and goes on; without, it raises them.
    """

    def consumer(self, name: str, subscription: TopicSubscription) -> FencedGroupConsumer:
        """Return a consumer that is not yet a member of its group."""

    def static_member(self, name: str, membership: StaticMembership) -> StaticMember:
        """Return a member that joins its group when it runs."""

    def reader(
        self,
        name: str,
        *,
        group: str | None = None,
        options: Mapping[str, Any] | None = None,
        log: logging.Logger | None = None,
    ) -> TopicReader:
        """Return a reader for an event loop. `group` is for authorization only: it joins none."""

    def blocking_reader(
        self, name: str, log: logging.Logger | None = None, options: Mapping[str, Any] | None = None
    ) -> BlockingTopicReader:
        """Return a reader for a thread."""

    def partition_reader(self, name: str) -> PartitionReader:
        """Return a reader with a thread of its own, which runs at full speed."""

    def producer(
        self, name: str, drop_after: timedelta | None = None, options: Mapping[str, Any] | None = None
    ) -> Producer:
        """Return a producer, which drops records that are not acknowledged within this time, if it is given."""

    def blocking_producer(self, name: str, drop_after: timedelta) -> BlockingProducer:
        """Return a producer for a thread, which drops records that are not acknowledged within this time."""

    def transactional_producer(
        self, name: str, transactional_id: str, options: Mapping[str, Any] | None = None
    ) -> TransactionalProducer:
        """Return a producer in place of the earlier ones of its id, which can write no more."""

    def admin(self, name: str) -> Admin:
        """Return a client that administers topics and offsets."""
