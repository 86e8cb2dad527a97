"""Kafka clients with the settings that all parts share.

`client` has the user's options, of KafkaSettings; `options` are what a part requires, and replace the user's. `name`
is the client id that brokers and logs show, unless the user sets another. A client with a logger logs librdkafka's
lines and its errors; one without is silent, and its user reports errors. Each raises InvalidSettingsError for options
that the client does not accept.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from contracts.errors import InvalidSettingsError
from contracts.model.topics import PARTITIONER, READ_COMMITTED
from contracts.records.record import Record

if TYPE_CHECKING:
    import logging
    from collections.abc import Iterator, Mapping

    from confluent_kafka import KafkaError, Message

    Options = Mapping[str, Any]

RECONNECT = {"reconnect.backoff.max.ms": 1000}
"""A client reconnects to a broker within a second."""


def create_admin_client(client: Options, name: str, options: Options | None = None) -> AdminClient:
    """Return a silent admin client. It has to live until its requests are answered."""
    with _refused_options():
        return AdminClient(_config(client, name, options, None))


def create_consumer(
    client: Options, name: str, group: str, options: Options | None = None, log: logging.Logger | None = None
) -> Consumer:
    """Return a consumer that commits explicitly, and reads no records of aborted transactions.

    It joins the group only when it subscribes; without a subscription it reads assigned partitions.
    """
    config = _config(client, name, options, log) | READ_COMMITTED | {"group.id": group, "enable.auto.commit": False}
    with _refused_options():
        return Consumer(config, logger=log) if log else Consumer(config)


def create_producer(
    client: Options, name: str, options: Options | None = None, log: logging.Logger | None = None
) -> Producer:
    """Return a producer that spreads keys over partitions as Java's clients do, without duplicates after a retry."""
    config = _config(client, name, options, log) | {"partitioner": PARTITIONER, "enable.idempotence": True}
    with _refused_options():
        return Producer(config, logger=log) if log else Producer(config)


def log_error(log: logging.Logger, name: str, error: KafkaError) -> None:
    """Log an error of a client as all parts do."""
    log.warning("kafka", extra={"facts": {"client": name, "code": error.name(), "detail": error.str()}})


def record_of(message: Message) -> Record:
    """Return a message of a consumer as a record. The message of a partition's end has its position."""
    headers = message.headers()
    fields = (
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple(headers) if headers else (),
    )
    return tuple.__new__(Record, fields)  # half the cost of calling the class


@contextmanager
def _refused_options() -> Iterator[None]:
    """Name the setting. A client connects later, so an error of its constructor is about its options."""
    try:
        yield
    except KafkaException as error:
        problem = f"Kafka's client does not accept it ({error.args[0].str()})"
        raise InvalidSettingsError([("STATELOOP_KAFKA_OPTIONS", problem)]) from error


def _config(client: Options, name: str, options: Options | None, log: logging.Logger | None) -> dict[str, Any]:
    reports = {"error_cb": lambda error: log_error(log, name, error)} if log else {"log_level": 0}
    return {**RECONNECT, "client.id": f"stateloop-{name}", **reports, **client, **(options or {})}
