"""The consumer group, which assigns partitions to instances. It reads no records: ingest does that."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from services.query.errors import DuplicateInstanceError, KafkaClientError
from services.query.store import StatePartition
from services.runtime.errors import ConsumerFailedError
from services.runtime.kafka.assignment_interfaces import StaticMembership

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from services.runtime.kafka.interfaces import Kafka
    from services.runtime.kafka.values import Partition

CLIENT = "query-group"


class GroupMember(Protocol):
    """This instance as a member of the consumer group."""

    async def run(self, assigned: Callable[[Collection[StatePartition]], None]) -> None:
        """Stay a member until cancelled, and pass the whole assignment on at each change.

        Raises DuplicateInstanceError.
        """


class KafkaGroupMember:
    """A static member: an instance that restarts within the session timeout gets its partitions back at once.

    `topics` gives the state of each topic. This instance goes on answering for a revoked partition until another can.
    """

    def __init__(self, kafka: Kafka, *, group: str, instance: str, session: float, topics: Mapping[str, str]) -> None:
        self._instance = instance
        self._topics = topics
        membership = StaticMembership(group, instance, tuple(topics), timedelta(seconds=session))
        self._member = kafka.static_member(CLIENT, membership)

    async def run(self, assigned: Callable[[Collection[StatePartition]], None]) -> None:
        """See `GroupMember.run`. Raises KafkaClientError."""
        try:
            await self._member.run(lambda partitions: assigned(self._of_states(partitions)))
        except ConsumerFailedError as error:
            if "fenced" in error.detail:  # the code is only that of a fatal error
                raise DuplicateInstanceError(self._instance, error.detail) from error
            raise KafkaClientError("group", error.code, error.detail) from error

    def _of_states(self, partitions: Collection[Partition]) -> frozenset[StatePartition]:
        known = (partition for partition in partitions if partition.topic in self._topics)
        return frozenset(StatePartition(self._topics[one.topic], one.number) for one in known)
