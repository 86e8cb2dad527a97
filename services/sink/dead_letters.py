"""Dead letters of records that a sink cannot write."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from contracts.records.record import LARGEST_HEAD, Reason
from contracts.types.key import shortened
from contracts.wire import DeadLetter
from services.sink.errors import EverythingRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from services.runtime.publisher import Publisher
    from services.sink.plan import RefusedRecord

MAX_DETAIL = 500
"""In characters."""
MAX_FAILURES = 100
"""The number of refused records in a row at which the sink stops."""


class DeadLetters:
    """Writes dead letters about records of one topic."""

    def __init__(self, publisher: Publisher, topic: str, origin: str) -> None:
        self._publisher = publisher
        self._topic = topic
        self._origin = origin
        self._in_a_row = 0

    async def send(self, refused: Iterable[RefusedRecord]) -> None:
        """Write them, and wait until all in-sync replicas have them. Raises EverythingRefusedError for too many."""
        for one in refused:
            self._in_a_row += 1
            if self._in_a_row > MAX_FAILURES:
                raise EverythingRefusedError(MAX_FAILURES, one.reason)
            key = one.record.key if one.key is None else one.key.encode()
            await self._publisher.publish(self._topic, shortened(key), self._dead_letter(one).encode())

    def note_success(self) -> None:
        """Count from the beginning: a record was written."""
        self._in_a_row = 0

    def _dead_letter(self, refused: RefusedRecord) -> DeadLetter:
        record = refused.record
        return DeadLetter(
            reason=Reason.NOT_STORED,
            detail=refused.reason[:MAX_DETAIL],
            topic=self._origin,
            partition=record.partition,
            offset=record.offset,
            timestamp=datetime.fromtimestamp(max(record.timestamp, 0) / 1000, UTC),
            head=(record.value or b"")[:LARGEST_HEAD].decode(errors="replace"),
        )
