"""The consumer group, which assigns partitions to instances. It reads no records: ingest does that."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from services.query.cluster.errors import DuplicateInstanceError
from services.query.ingest.consumer_thread import POLL_S, Config, ConsumerThread
from services.query.ingest.errors import KafkaClientError
from services.query.store import StatePartition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

log = logging.getLogger(__name__)

READS_NOTHING: Config = {"queued.min.messages": 1, "queued.max.messages.kbytes": 1, "fetch.message.max.bytes": 1}
HEARTBEATS_PER_SESSION = 6


class GroupMember(Protocol):
    """This instance as a member of the consumer group."""

    async def run(self, assigned: Callable[[Collection[StatePartition]], None]) -> None:
        """Stay a member until cancelled, and pass the whole assignment on at each change.

        Raises DuplicateInstanceError.
        """


class KafkaGroupMember:
    """A static member: an instance that restarts within the session timeout gets its partitions back at once.

    `topics` gives the state of each topic.
    """

    def __init__(
        self, client: Mapping[str, str], *, group: str, instance: str, session: float, topics: Mapping[str, str]
    ) -> None:
        self._instance = instance
        self._topics = topics
        self._assignment: set[StatePartition] = set()
        options: Config = {
            **READS_NOTHING,
            "group.instance.id": instance,
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": round(session * 1000),
            "heartbeat.interval.ms": round(session * 1000 / HEARTBEATS_PER_SESSION),
        }
        self._thread = ConsumerThread(client, "group", group, options, self._failure)

    async def run(self, assigned: Callable[[Collection[StatePartition]], None]) -> None:
        """See `GroupMember.run`."""
        self._loop = asyncio.get_running_loop()
        self._assigned = assigned
        self._thread.consumer.subscribe(
            list(self._topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )
        await self._thread.run(self._poll)

    def _poll(self, consumer: Consumer) -> None:
        message = consumer.poll(POLL_S)
        if message is not None and (error := message.error()) is not None:
            raise KafkaException(error)

    def _failure(self, error: KafkaError) -> Exception:
        if "fenced" in error.str():  # the code is only that of a fatal error
            return DuplicateInstanceError(self._instance, error.str())
        return KafkaClientError("group", error.name(), error.str())

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(
            [TopicPartition(partition.topic, partition.partition, OFFSET_END) for partition in partitions]
        )
        consumer.pause(partitions)
        self._assignment |= self._state_partitions(partitions)
        self._notify()

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Does not wait: this instance goes on answering until another can."""
        consumer.incremental_unassign(partitions)
        self._assignment -= self._state_partitions(partitions)
        self._notify()

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        log.warning("the group took all partitions away", extra={"facts": {"partitions": len(partitions)}})
        self._on_revoke(consumer, partitions)

    def _state_partitions(self, partitions: Iterable[TopicPartition]) -> set[StatePartition]:
        known = (partition for partition in partitions if partition.topic in self._topics)
        return {StatePartition(self._topics[one.topic], one.partition) for one in known}

    def _notify(self) -> None:
        self._loop.call_soon_threadsafe(self._assigned, frozenset(self._assignment))
