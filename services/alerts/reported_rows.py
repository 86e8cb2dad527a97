"""Finds the dead letters of rows that are reported: each version of a row has one, however often workers start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.records.record import Reason
from contracts.wire import DeadLetter
from services.alerts.restore import answered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from services.runtime.kafka.interfaces import BlockingTopicReader
    from services.runtime.kafka.values import BoundedRange, Output, Partition


class ReportedRows:
    """Reads the dead letters since a row was written. Two workers that report a row at the same time both do."""

    def __init__(self, topic: str, reader: BlockingTopicReader) -> None:
        self._topic = topic
        self._reader = reader

    def is_about_row(self, output: Output) -> bool:
        """Return whether a record is the dead letter of a row."""
        return (
            output.topic == self._topic
            and DeadLetter.model_validate_json(output.value or b"").reason == Reason.INVALID_ROW
        )

    def unreported(self, outputs: Iterable[Output], is_stopping: Callable[[], bool]) -> Iterator[Output]:
        """Yield these records without the dead letters of rows that the topic has. It waits for a broker.

        If the reader is to stop, it may not find all of them. Raises TopicReadError.
        """
        return (
            output for output in outputs if not self.is_about_row(output) or not self._is_reported(output, is_stopping)
        )

    def _is_reported(self, output: Output, is_stopping: Callable[[], bool]) -> bool:
        dead_letter = DeadLetter.model_validate_json(output.value or b"")
        bounds = answered(lambda: self._bounds_since(dead_letter.timestamp), is_stopping)
        is_reported = False
        for records in self._reader.read(bounds or {}, is_stopping):
            same_key = (record.value for record in records if record.key == output.key and record.value is not None)
            if is_reported := any(_is_same(dead_letter, value) for value in same_key):
                break
        self._reader.stop()
        return is_reported

    def _bounds_since(self, time: datetime) -> Mapping[Partition, BoundedRange]:
        """Return the ranges of all partitions since a time: a key has another one since partitions were added.

        Raises TopicReadError.
        """
        return self._reader.bounds_since(self._reader.partitions([self._topic]), time)


def _is_same(dead_letter: DeadLetter, value: bytes) -> bool:
    try:
        return _identity(DeadLetter.model_validate_json(value)) == _identity(dead_letter)
    except ValueError:
        return False


def _identity(dead_letter: DeadLetter) -> tuple[object, ...]:
    """The version of the row, and the condition that raised, without its error, which depends on the snapshot."""
    return (
        dead_letter.reason,
        dead_letter.topic,
        dead_letter.partition,
        dead_letter.offset,
        (dead_letter.detail or "").partition(" raised ")[0],
    )
