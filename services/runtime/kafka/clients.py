"""Makes the clients of a process, with confluent-kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.async_reader import KafkaTopicReader
from services.runtime.kafka.blocking import TransactionalKafkaProducer
from services.runtime.kafka.group_consumer import KafkaGroupConsumer
from services.runtime.kafka.producer import KafkaProducer
from services.runtime.kafka.reader import BlockingKafkaReader

if TYPE_CHECKING:
    import logging
    from datetime import timedelta

    from services.runtime.kafka.interfaces import (
        Admin,
        BlockingTopicReader,
        FencedGroupConsumer,
        Producer,
        Subscription,
        TopicReader,
        TransactionalProducer,
    )
    from services.runtime.kafka.options import Options


class KafkaClients:
    """Makes clients of the brokers that the user's options name. Implements Kafka."""

    def __init__(self, client: Options) -> None:
        self._client = client

    def consumer(self, name: str, subscription: Subscription) -> FencedGroupConsumer:
        """See `Kafka.consumer`."""
        return KafkaGroupConsumer(self._client, name, subscription)

    def reader(
        self, name: str, *, group: str | None = None, options: Options | None = None, log: logging.Logger | None = None
    ) -> TopicReader:
        """See `Kafka.reader`."""
        return KafkaTopicReader(BlockingKafkaReader(self._client, name, group=group, options=options, log=log))

    def blocking_reader(self, name: str, log: logging.Logger | None = None) -> BlockingTopicReader:
        """See `Kafka.blocking_reader`."""
        return BlockingKafkaReader(self._client, name, log=log)

    def producer(self, name: str, drop_after: timedelta | None = None) -> Producer:
        """See `Kafka.producer`."""
        return KafkaProducer(self._client, name, drop_after)

    def transactional_producer(
        self, name: str, transactional_id: str, options: Options | None = None
    ) -> TransactionalProducer:
        """See `Kafka.transactional_producer`."""
        return TransactionalKafkaProducer(self._client, name, transactional_id, options)

    def admin(self, name: str) -> Admin:
        """See `Kafka.admin`."""
        return KafkaAdmin(self._client, name)
