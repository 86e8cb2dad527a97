"""Makes the clients of a process of the simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.kafka.admin import ModelAdmin
from tests.simulation.kafka.blocking_producers import ModelBlockingProducer, ModelTransactionalProducer
from tests.simulation.kafka.consumer import ModelGroupConsumer
from tests.simulation.kafka.partition_readers import BATCH, ModelPartitionReader
from tests.simulation.kafka.producers import ModelProducer
from tests.simulation.kafka.readers import PATIENCE_S, ModelBlockingReader, ModelTopicReader
from tests.simulation.kafka.static_members import ModelStaticMember

if TYPE_CHECKING:
    import logging
    from collections.abc import Mapping
    from datetime import timedelta

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
    from tests.simulation.kafka.broker import Broker
    from tests.simulation.kafka.network import Network


class ModelKafka:
    """Makes clients of a model broker that share a network. Implements Kafka.

    `batch` is the number of records that a partition reader reads of a partition at once.
    """

    def __init__(self, broker: Broker, network: Network, patience_s: float = PATIENCE_S, batch: int = BATCH) -> None:
        self.broker = broker
        self.network = network
        self._patience_s = patience_s
        self._batch = batch

    def consumer(self, name: str, subscription: TopicSubscription) -> FencedGroupConsumer:  # noqa: ARG002
        """See `Kafka.consumer`."""
        return ModelGroupConsumer(self.broker, self.network, subscription)

    def static_member(self, name: str, membership: StaticMembership) -> StaticMember:  # noqa: ARG002
        """See `Kafka.static_member`."""
        return ModelStaticMember(self.broker, self.network, membership)

    def reader(
        self,
        name: str,  # noqa: ARG002
        *,
        group: str | None = None,  # noqa: ARG002
        options: Mapping[str, Any] | None = None,  # noqa: ARG002
        log: logging.Logger | None = None,  # noqa: ARG002
    ) -> TopicReader:
        """See `Kafka.reader`."""
        return ModelTopicReader(self.broker, self.network, self._patience_s)

    def blocking_reader(
        self,
        name: str,  # noqa: ARG002
        log: logging.Logger | None = None,  # noqa: ARG002
        options: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> BlockingTopicReader:
        """See `Kafka.blocking_reader`."""
        return ModelBlockingReader(self.broker, self.network, self._patience_s)

    def partition_reader(self, name: str) -> PartitionReader:  # noqa: ARG002
        """See `Kafka.partition_reader`."""
        return ModelPartitionReader(self.broker, self.network, self._batch)

    def producer(
        self,
        name: str,  # noqa: ARG002
        drop_after: timedelta | None = None,
        options: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> Producer:
        """See `Kafka.producer`."""
        return ModelProducer(self.broker, self.network, drop_after)

    def blocking_producer(self, name: str, drop_after: timedelta) -> BlockingProducer:  # noqa: ARG002
        """See `Kafka.blocking_producer`."""
        return ModelBlockingProducer(self.broker, self.network, drop_after)

    def transactional_producer(
        self,
        name: str,  # noqa: ARG002
        transactional_id: str,
        options: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> TransactionalProducer:
        """See `Kafka.transactional_producer`."""
        return ModelTransactionalProducer(self.broker, self.network, transactional_id)

    def admin(self, name: str) -> Admin:  # noqa: ARG002
        """See `Kafka.admin`."""
        return ModelAdmin(self.broker, self.network)
