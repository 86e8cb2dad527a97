"""Kafka clients with the settings that all parts share; `client` is that of KafkaSettings.

Options are librdkafka's, with underscores instead of dots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from contracts.model.topics import PARTITIONER, READ_COMMITTED

if TYPE_CHECKING:
    from collections.abc import Mapping

Option = str | int | bool
QUIET: dict[str, Option] = {"log_level": 0, "reconnect.backoff.max.ms": 1000}
"""The client logs nothing: its user reports errors. It tries a broker that is away again within a second."""


def admin_client(client: Mapping[str, Option]) -> AdminClient:
    """Return an admin client. It has to live until its requests are answered."""
    return AdminClient({**QUIET, **client})


def unsubscribed_consumer(client: Mapping[str, Option], group: str, **options: Option) -> Consumer:
    """Return a consumer that reads assigned partitions or committed offsets, and is no member of the group."""
    named = {name.replace("_", "."): value for name, value in options.items()}
    return Consumer({**QUIET, **client, **READ_COMMITTED, "group.id": group, "enable.auto.commit": False, **named})


def keyed_producer(client: Mapping[str, Option], **options: Option) -> Producer:
    """Return a producer that spreads keys over partitions as Java's clients do, without duplicates after a retry."""
    named = {name.replace("_", "."): value for name, value in options.items()}
    return Producer({**QUIET, **client, "partitioner": PARTITIONER, "enable.idempotence": True, **named})
