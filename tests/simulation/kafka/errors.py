"""The refusals of the model broker. Its clients raise the product's errors instead."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from services.runtime.errors import DeliveryFailedError, KafkaRequestError, TopicReadError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

DETAIL = "the model broker refuses it"


class RefusedError(Exception):
    """The broker, or its client, does not carry out a request. `code` is the name that confluent-kafka has for it."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@contextmanager
def requested(request: str, topic: str = "") -> Iterator[None]:
    """Raise KafkaRequestError for a refusal."""
    try:
        yield
    except RefusedError as error:
        raise KafkaRequestError(request, error.code, DETAIL, topic) from error


@contextmanager
def reading(topics: Collection[str]) -> Iterator[None]:
    """Raise TopicReadError for a refusal."""
    try:
        yield
    except RefusedError as error:
        raise TopicReadError(", ".join(sorted(topics)), error.code, DETAIL) from error


def delivery_failed(topic: str, error: RefusedError) -> DeliveryFailedError:
    """Return the error of a record that was not written."""
    return DeliveryFailedError(topic, error.code, DETAIL)
