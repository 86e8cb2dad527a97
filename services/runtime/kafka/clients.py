"""Makes the clients of a process, with confluent-kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.async_reader import KafkaTopicReader
from services.runtime.kafka.blocking import BlockingKafkaProducer, TransactionalKafkaProducer
from services.runtime.kafka.broker_check import require_accepted
from services.runtime.kafka.group_consumer import KafkaGroupConsumer
from services.runtime.kafka.interfaces import Kafka
from services.runtime.kafka.partition_reader import KafkaPartitionReader
from services.runtime.kafka.producer import KafkaProducer
from services.runtime.kafka.reader import BlockingKafkaReader
from services.runtime.kafka.static_member import KafkaStaticMember

if TYPE_CHECKING:
    import logging
    from datetime import timedelta

    from contracts.settings import KafkaSettings
    from services.runtime.kafka.assignment_interfaces import PartitionReader, StaticMember, StaticMembership
    from services.runtime.kafka.interfaces import (
        Admin,
        BlockingProducer,
        BlockingTopicReader,
        FencedGroupConsumer,
        Producer,
        TopicReader,
        TopicSubscription,
        TransactionalProducer,
    )
    from services.runtime.kafka.options import Options


class KafkaClients(Kafka):
    """Makes clients of the brokers that the user's options name."""

    def __init__(self, client: Options) -> None:
        self._client = client

    @override
    def consumer(self, name: str, subscription: TopicSubscription) -> FencedGroupConsumer:
        return KafkaGroupConsumer(self._client, name, subscription)

    @override
    def static_member(self, name: str, membership: StaticMembership) -> StaticMember:
        return KafkaStaticMember(self._client, name, membership)

    @override
    def reader(
        self, name: str, *, group: str | None = None, options: Options | None = None, log: logging.Logger | None = None
    ) -> TopicReader:
        return KafkaTopicReader(BlockingKafkaReader(self._client, name, group=group, options=options, log=log))

    @override
    def blocking_reader(
        self, name: str, log: logging.Logger | None = None, options: Options | None = None
    ) -> BlockingTopicReader:
        return BlockingKafkaReader(self._client, name, options=options, log=log)

    @override
    def partition_reader(self, name: str) -> PartitionReader:
        return KafkaPartitionReader(self._client, name)

    @override
    def producer(self, name: str, drop_after: timedelta | None = None, options: Options | None = None) -> Producer:
        return KafkaProducer(self._client, name, drop_after, options)

    @override
    def blocking_producer(self, name: str, drop_after: timedelta) -> BlockingProducer:
        return BlockingKafkaProducer(self._client, name, drop_after)

    @override
    def transactional_producer(
        self, name: str, transactional_id: str, options: Options | None = None
    ) -> TransactionalProducer:
        return TransactionalKafkaProducer(self._client, name, transactional_id, options)

    @override
    def admin(self, name: str) -> Admin:
        return KafkaAdmin(self._client, name)


def accepted_clients(settings: KafkaSettings) -> Kafka:
    """Return what makes the clients of a service. Raises as `require_accepted`, if the broker refuses this client."""
    require_accepted(settings)
    return KafkaClients(settings.client())
