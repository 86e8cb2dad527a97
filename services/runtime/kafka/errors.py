"""Converts errors of the client to errors of the parts."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from services.runtime.errors import DeliveryFailedError, KafkaRequestError, TopicReadError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from confluent_kafka import KafkaError, TopicPartition


def delivery_failed(topic: str, error: KafkaError) -> DeliveryFailedError:
    """Return the error of a record that was not written."""
    return DeliveryFailedError(topic, error.name(), error.str())


def read_error(topic: str, error: KafkaError) -> TopicReadError:
    """Return the error of a topic that is read."""
    return TopicReadError(topic, error.name(), error.str())


def raise_errors(results: Iterable[TopicPartition]) -> None:
    """Raise KafkaException for the first partition that has an error."""
    for result in results:
        if result.error is not None:
            raise KafkaException(result.error)


@contextmanager
def requested(request: str, topic: str = "") -> Iterator[None]:
    """Raise KafkaRequestError for an error of the client. `request` is the request, as in "commit offsets"."""
    try:
        yield
    except KafkaException as error:
        problem: KafkaError = error.args[0]
        raise KafkaRequestError(request, problem.name(), problem.str(), topic) from error
