"""A member of a group that reads nothing: it only learns which partitions the group assigns to it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_END, Consumer, KafkaException, TopicPartition
from typing_extensions import override

from services.runtime.kafka.assignment_interfaces import StaticMember
from services.runtime.kafka.consumer_thread import POLL_S, ConsumerThread
from services.runtime.kafka.values import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from services.runtime.kafka.assignment_interfaces import StaticMembership
    from services.runtime.kafka.options import Options

log = logging.getLogger(__name__)

READS_NOTHING = {"queued.min.messages": 1, "queued.max.messages.kbytes": 1, "fetch.message.max.bytes": 1}
HEARTBEATS_PER_SESSION = 6


class KafkaStaticMember(StaticMember):
    """A consumer whose partitions are paused, with a thread of its own."""

    def __init__(self, client: Options, name: str, membership: StaticMembership) -> None:
        session_ms = round(membership.session.total_seconds() * 1000)
        options = {
            **READS_NOTHING,
            "group.instance.id": membership.instance,
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": round(session_ms / HEARTBEATS_PER_SESSION),
        }
        self._topics = list(membership.topics)
        self._thread = ConsumerThread(client, name, membership.group, options)
        self._assignment: set[Partition] = set()

    @override
    async def run(self, assigned: Callable[[Collection[Partition]], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._assigned = assigned
        self._thread.consumer.subscribe(
            self._topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )
        await self._thread.run(_poll)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign([TopicPartition(one.topic, one.partition, OFFSET_END) for one in partitions])
        consumer.pause(partitions)
        self._notify(self._assignment | _places(partitions))

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_unassign(partitions)
        self._notify(self._assignment - _places(partitions))

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        log.warning("the group took all partitions away", extra={"facts": {"partitions": len(partitions)}})
        self._on_revoke(consumer, partitions)

    def _notify(self, assignment: set[Partition]) -> None:
        self._assignment = assignment
        self._loop.call_soon_threadsafe(self._assigned, frozenset(assignment))


def _poll(consumer: Consumer) -> None:
    message = consumer.poll(POLL_S)
    if message is not None and (error := message.error()) is not None:
        raise KafkaException(error)


def _places(partitions: list[TopicPartition]) -> set[Partition]:
    return {Partition(one.topic, one.partition) for one in partitions}
