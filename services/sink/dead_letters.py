"""Dead letters of records that a sink cannot write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.records.record import LARGEST_HEAD, Reason
from contracts.types.key import shortened
from contracts.wire import DeadLetter
from services.sink.errors import EverythingRefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from services.runtime.publisher import Publisher
    from services.sink.plan import RefusedRecord

MAX_DETAIL = 500
"""In characters."""
MAX_KEYS = 100
"""The number of keys that are refused in a row, without a record that is written, at which the sink stops."""


class DeadLetters:
    """Writes dead letters about records of one topic."""

    def __init__(self, publisher: Publisher, topic: str, origin: str) -> None:
        self._publisher = publisher
        self._topic = topic
        self._origin = origin
        self._keys: set[bytes | None] = set()

    def check(self, refused: Sequence[RefusedRecord], others: int) -> None:
        """Note records that are refused, and the number of others of their batch that are not.

        Raises EverythingRefusedError if only records of too many keys have been refused since the last success. One key
        alone stops nothing.
        """
        if others:
            self._keys.clear()
            return
        self._keys.update(_key(one) for one in refused)
        if len(self._keys) > MAX_KEYS:
            raise EverythingRefusedError(len(self._keys), refused[-1].reason)

    async def send(self, refused: RefusedRecord) -> None:
        """Write a dead letter, and wait until all in-sync replicas have it."""
        key = shortened(_key(refused))
        await self._publisher.publish(self._topic, key, self._dead_letter(refused).encode())

    def _dead_letter(self, refused: RefusedRecord) -> DeadLetter:
        record = refused.record
        return DeadLetter(
            reason=Reason.NOT_STORED,
            detail=refused.reason[:MAX_DETAIL],
            topic=self._origin,
            partition=record.partition,
            offset=record.offset,
            timestamp=record.timestamp,
            head=(record.value or b"")[:LARGEST_HEAD].decode(errors="replace"),
        )


def _key(refused: RefusedRecord) -> bytes | None:
    return refused.record.key if refused.key is None else refused.key.encode()
