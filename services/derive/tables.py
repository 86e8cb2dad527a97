"""The reference tables of an application, read whole and followed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from contracts.records.record import Reason
from contracts.records.tables import TableRow, TableRows
from contracts.types.key import shortened
from contracts.wire import DeadLetter
from services.derive.derive import OutputRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from contracts import Application
    from contracts.records.record import Record
    from services.runtime.topic_reader import TopicReader

log = logging.getLogger(__name__)


class RowChange(NamedTuple):
    """A row that was put; without a row, one that was removed."""

    table: str
    key: str
    row: TableRow | None


class Tables:
    """The tables' rows. Each record that a model rejects is a dead letter of the worker that has its partition."""

    def __init__(self, application: Application, reader: TopicReader) -> None:
        self._dead_letters = application.topics.dead_letters
        self._rows = {application.topics.table(one): TableRows(one) for one in application.tables}
        self._reader = reader
        self._bad: list[tuple[Record, str]] = []

    def read(self, is_stopping: Callable[[], bool]) -> Iterator[RowChange]:
        """Yield the rows from the beginning of the topics to their end. Raises KafkaException."""
        for records in self._reader.read_to_end(self._reader.partitions(list(self._rows)), is_stopping):
            yield from self._changes(records)

    def follow(self) -> list[RowChange]:
        """Return the changes that have come since. Raises KafkaException."""
        return list(self._changes(self._reader.poll()))

    def dead_letters(self, partitions: Collection[int]) -> list[OutputRecord]:
        """Return those of the bad records of these partitions."""
        return [self._dead_letter(record, problem) for record, problem in self._bad if record.partition in partitions]

    def reported(self, partitions: Collection[int]) -> None:
        """Drop the bad records of these partitions: their dead letters are written."""
        self._bad = [one for one in self._bad if one[0].partition not in partitions]

    def _changes(self, records: Iterable[Record]) -> Iterator[RowChange]:
        for record in records:
            table = self._rows[record.topic]
            try:
                key = table.apply(record)
            except ValueError as error:
                log.warning("no row at %s of %s: %s", record.offset, record.topic, error)
                self._bad.append((record, str(error)))
            else:
                yield RowChange(table.table.name, key, table.rows.get(key))

    def _dead_letter(self, record: Record, problem: str) -> OutputRecord:
        dead_letter = DeadLetter.of(record, Reason.INVALID_ROW, problem)
        return OutputRecord(self._dead_letters, shortened(record.key), dead_letter.encode())
