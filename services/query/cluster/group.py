"""The consumer group, which says who should own which partitions. Nothing is read here: the follower does that."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from services.query.cluster.errors import ClientFailedError, NamesakeError
from services.query.ingest.consumer_thread import POLL_S, Config, Polling
from services.query.ingest.ingestion import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

log = logging.getLogger(__name__)

READS_NOTHING: Config = {"queued.min.messages": 1, "queued.max.messages.kbytes": 1, "fetch.message.max.bytes": 1}


class Membership(Protocol):
    """This instance as a member of the group."""

    async def run(self, assigned: Callable[[Collection[Part]], None]) -> None:
        """Be a member until cancelled, and tell all parts that are ours at each change. Raises NamesakeError."""


class KafkaMembership:
    """A static member: one that is back within the session timeout gets its partitions again at once.

    `topics` gives each topic's state.
    """

    def __init__(
        self, client: Mapping[str, str], *, group: str, instance: str, session: float, topics: Mapping[str, str]
    ) -> None:
        self._instance = instance
        self._topics = topics
        self._ours: set[Part] = set()
        member: Config = {
            **READS_NOTHING,
            "group.id": group,
            "group.instance.id": instance,
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": round(session * 1000),
            "heartbeat.interval.ms": round(session * 1000 / 6),
        }
        self._polling = Polling(client, member, "group", self._failure)

    async def run(self, assigned: Callable[[Collection[Part]], None]) -> None:
        """See `Membership.run`."""
        self._loop = asyncio.get_running_loop()
        self._assigned = assigned
        self._polling.consumer.subscribe(
            list(self._topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )
        await self._polling.run(self._poll)

    def _poll(self, consumer: Consumer) -> None:
        message = consumer.poll(POLL_S)
        if message is not None and (error := message.error()) is not None:
            raise KafkaException(error)

    def _failure(self, error: KafkaError) -> Exception:
        if "fenced" in error.str():  # the code says no more than that it is fatal
            return NamesakeError(self._instance, error.str())
        return ClientFailedError("group", error.name(), error.str())

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign([TopicPartition(one.topic, one.partition, OFFSET_END) for one in partitions])
        consumer.pause(partitions)
        self._ours |= self._parts(partitions)
        self._tell()

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Nothing waits here: this instance goes on answering until another can."""
        consumer.incremental_unassign(partitions)
        self._ours -= self._parts(partitions)
        self._tell()

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        log.warning("the group took all partitions away", extra={"facts": {"partitions": len(partitions)}})
        self._on_revoke(consumer, partitions)

    def _parts(self, partitions: Iterable[TopicPartition]) -> set[Part]:
        return {Part(self._topics[one.topic], one.partition) for one in partitions if one.topic in self._topics}

    def _tell(self) -> None:
        self._loop.call_soon_threadsafe(self._assigned, frozenset(self._ours))
