"""Reads the dead letters of a topic, and selects among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pydantic import ValidationError

from contracts.records.record import Reason
from contracts.wire import DeadLetter
from services.runtime.kafka.reader import stored_records

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping
    from datetime import datetime

    from contracts.records.record import Record

NAME = "redrive"
"""The name of the Kafka clients."""
CALLS = {Reason.ENRICHMENT_FAILED, Reason.DELIVERY_FAILED}
"""The reasons of failed calls."""


@dataclass(frozen=True)
class StoredDeadLetter:
    """A dead letter, None if it cannot be decoded, with the key of its origin and the time at which it was written."""

    dead_letter: DeadLetter | None
    key: bytes | None
    written: datetime

    @classmethod
    def of(cls, record: Record) -> Self:
        """Return the dead letter of a record."""
        try:
            dead_letter = DeadLetter.model_validate_json(record.value or b"")
        except ValidationError:
            dead_letter = None
        return cls(dead_letter, record.key, record.timestamp)

    @property
    def origin(self) -> Hashable | None:
        """What was refused, which a repeated dead letter has too; None where it does not name a record."""
        letter = self.dead_letter
        if letter is None or letter.offset < 0:
            return None
        return letter.reason, letter.enrichment, letter.topic, letter.partition, letter.offset, letter.idempotency_key


@dataclass(frozen=True)
class DeadLetterFilter:
    """Conditions on dead letters; an empty one is always met."""

    reasons: frozenset[str] = frozenset()
    enrichments: frozenset[str] = frozenset()
    since: datetime | None = None
    until: datetime | None = None

    @property
    def has_records(self) -> bool:
        """Whether it selects dead letters of refused records, which are sent again, and not of failed calls only."""
        return not self.enrichments and (not self.reasons or bool(self.reasons - CALLS))

    def matches(self, found: StoredDeadLetter) -> bool:
        """Return whether it meets all conditions. Their time is the time of writing; `until` is exclusive."""
        if (self.since and found.written < self.since) or (self.until and found.written >= self.until):
            return False
        if found.dead_letter is None:
            return not self.reasons and not self.enrichments
        return (not self.reasons or found.dead_letter.reason in self.reasons) and (
            not self.enrichments or found.dead_letter.enrichment in self.enrichments
        )


def dead_letters(client: Mapping[str, str], topic: str) -> Iterator[StoredDeadLetter]:
    """Yield the dead letters from the start of the topic to its present end. Raises TopicReadError."""
    yield from map(StoredDeadLetter.of, stored_records(client, NAME, topic))
