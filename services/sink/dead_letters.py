"""Dead letters of records that a sink cannot write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.records.record import Reason
from contracts.types.key import shortened
from contracts.wire import DeadLetter
from services.runtime.errors import EverythingFailsError
from services.runtime.kafka.values import Output
from services.runtime.worker.alarm import Alarm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from services.runtime.kafka.interfaces import Producer
    from services.sink.plan import RefusedRecord

MAX_KEYS = 100
"""The number of keys that are refused in a row, without a record that is written, at which the sink stops."""
REMEDY = "Check STATELOOP_APPLICATION and the store, then start the sink again: it continues where it was"
"""What to do when no record can be written."""


class DeadLetters:
    """Writes dead letters about records of one topic."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._alarm = Alarm.in_a_row(MAX_KEYS)

    def check(self, refused: Sequence[RefusedRecord], others: int) -> None:
        """Note records that are refused, and the number of others of their batch that are not.

        Raises EverythingFailsError if only records of too many keys have been refused since the last success. One key
        alone stops nothing.
        """
        if others:
            self._alarm.note(failed=False)
            return
        for record in refused:
            if self._alarm.note(failed=True, subject=_key(record) or b""):
                keys = f"the records of {self._alarm.failed} keys in a row"
                raise EverythingFailsError(
                    f"{keys} could not be written, the last one because: {record.reason}", REMEDY
                )

    async def send(self, refused: RefusedRecord) -> None:
        """Write a dead letter, and wait until all in-sync replicas have it."""
        dead_letter = DeadLetter.of(refused.record, Reason.NOT_STORED, refused.reason)
        await self._producer.send([Output(self._topic, shortened(_key(refused)), dead_letter.encode())])


def _key(refused: RefusedRecord) -> bytes | None:
    return refused.record.key if refused.key is None else refused.key.encode()
