"""Finds the dead letters of rows that are reported: each version of a row has one, however often workers start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.records.record import Reason
from contracts.wire import DeadLetter
from contracts.wire.partition import partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from services.derive.derive import OutputRecord
    from services.runtime.topic_reader import TopicReader


class ReportedRows:
    """Reads the dead letters since a row was written. Two workers that report a row at the same time both do."""

    def __init__(self, topic: str, reader: TopicReader, is_stopping: Callable[[], bool]) -> None:
        self._topic = topic
        self._reader = reader
        self._is_stopping = is_stopping

    def unreported(self, outputs: Iterable[OutputRecord]) -> Iterator[OutputRecord]:
        """Yield these records without the dead letters that the topic has. Raises KafkaException."""
        return (one for one in outputs if one.topic != self._topic or not self._is_reported(one))

    def _is_reported(self, one: OutputRecord) -> bool:
        dead_letter = DeadLetter.model_validate_json(one.value)
        if dead_letter.reason != Reason.INVALID_ROW:
            return False
        homes = self._reader.partitions([self._topic])
        home = self._topic, partition(one.key or b"", max(len(homes), 1))
        found = False
        for records in self._reader.read_to_end([home], self._is_stopping, since=dead_letter.timestamp):
            same_key = (record.value for record in records if record.key == one.key and record.value is not None)
            found = found or any(_is_same(dead_letter, value) for value in same_key)
        self._reader.stop()
        return found or self._is_stopping()


def _is_same(one: DeadLetter, value: bytes) -> bool:
    try:
        return _identity(DeadLetter.model_validate_json(value)) == _identity(one)
    except ValueError:
        return False


def _identity(one: DeadLetter) -> tuple[object, ...]:
    """The version of the row, and the condition that raised, without its error, which depends on the snapshot."""
    return one.reason, one.topic, one.partition, one.offset, (one.detail or "").partition(" raised ")[0]
