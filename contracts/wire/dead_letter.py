"""The records of the topics of dead letters."""

from datetime import datetime
from typing import Any, Protocol, Self

from pydantic import AwareDatetime

from contracts.wire.messages import TopicRecord

LARGEST_HEAD = 1_000
"""The number of bytes or characters of a record's value in a dead letter."""
LARGEST_DETAIL = 500
"""The number of characters of a detail."""
NEVER_WRITTEN = -1
"""The partition and the offset of an origin that has none."""


class _Record(Protocol):
    """A `Record` or a `RawRecord`."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> datetime: ...
    @property
    def value(self) -> bytes | None: ...


class DeadLetter(TopicRecord):
    """A record that could not be processed, with the reason and its origin.

    The job's dead letters have topic, partition and offset of the record; a worker's have the snapshot's. A snapshot
    that was too large to be written has partition and offset -1.
    """

    reason: str
    detail: str | None = None
    topic: str
    partition: int
    offset: int
    timestamp: AwareDatetime
    """The origin's broker time."""
    epoch: int | None = None
    """The job's epoch; of a worker's request, its snapshot's. A rebuild refuses a record again in its own."""
    head: str | None = None
    """The beginning of the record's value."""
    enrichment: str | None = None
    """The enrichment that failed, or the alerts with the webhook; this and all below is only in dead letters of a
    worker's failed requests."""
    first_seen: AwareDatetime | None = None
    version: int | None = None
    """With `first_seen`, `epoch` and the record's key: the snapshot that the request was planned on."""
    spent: int | None = None
    """The same number as in the failure's feedback; null without a budget."""
    failed_at: AwareDatetime | None = None
    """The time of the failure by the worker's clock, as in its feedback. Earlier releases did not write it."""
    attempts: int | None = None
    """The number of calls."""
    response: str | None = None
    """The beginning of the last response, if one came."""
    idempotency_key: str | None = None
    """Names the event that a webhook did not accept; null without a webhook."""

    @classmethod
    def of(cls, record: _Record, reason: str, detail: str | None = None, **facts: Any) -> Self:
        """Return the dead letter of a record. `facts` are the other fields, and replace the record's."""
        origin: dict[str, Any] = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "head": None if record.value is None else record.value[:LARGEST_HEAD].decode(errors="replace"),
        }
        return cls(reason=reason, detail=detail and detail[:LARGEST_DETAIL], **origin | facts)
