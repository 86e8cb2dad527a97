"""The protocols of Kafka's clients, and the values that they pass.

A part that takes one of these runs with a broker, or with a model of one. The asynchronous protocols are for an event
loop; the methods of the others block their thread, and one thread at a time uses a client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager


BY_KEY = -1
"""The partition of a record whose partition follows from its key."""


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int


class Output(NamedTuple):
    """A record to write. Its timestamp is in milliseconds since 1970; 0 is the time of the call."""

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int = BY_KEY
    timestamp_ms: int = 0
    headers: Sequence[tuple[str, str | bytes | None]] = ()


class GroupOffset(NamedTuple):
    """A committed offset of a group: of the next record to read. The offset is negative if none is committed."""

    offset: int
    metadata: str = ""


class Producer(Protocol):
    """Writes records from an event loop."""

    def send(self, outputs: Sequence[Output]) -> asyncio.Future[Sequence[int]]:
        """Write records, in the order of the calls; the future has their offsets when all in-sync replicas have them.

        While the queue of the client is full, the records wait for room. Those of a cancelled future that still wait
        are dropped. The future raises DeliveryFailedError, after all of its records are acknowledged or dropped.
        """

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

    def transaction(self) -> AbstractContextManager[None]:
        """Begin a transaction, and commit it at the end of the block, or abort it after an error.

        Raises KafkaRequestError.
        """
