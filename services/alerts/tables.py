"""The rows of an application's reference tables, which all partitions of a worker share."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from contracts.alerts.evaluation import Rules
from contracts.records.record import Reason
from contracts.records.tables import TableRows
from contracts.types.key import shortened
from contracts.wire import DeadLetter
from services.runtime.kafka.values import Output

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pydantic import BaseModel

    from contracts import Application
    from contracts.records.record import Record

log = logging.getLogger(__name__)


class RowChange(NamedTuple):
    """A row that was put or removed."""

    table: str
    key: str


class Tables:
    """The present values of the tables, and the rules of the alerts.

    Each record that a model rejects is a dead letter of one worker, by its partition.
    """

    def __init__(self, application: Application) -> None:
        self._dead_letters = application.topics.dead_letters
        self._rows = {application.topics.table(table): TableRows(table) for table in application.tables}
        self._rules_of: dict[str, list[Rules]] = {table.name: [] for table in application.tables}
        self._next: dict[tuple[str, int], int] = {}
        """The offset behind the last record, by topic and partition."""
        self._unreported: list[tuple[int, Output]] = []
        """The partition and the dead letter of each bad record that is not reported yet."""
        self.values: dict[str, dict[str, BaseModel]] = {table.name: {} for table in application.tables}
        """The values of the tables, by name and key."""
        self.rules = {alerts.name: Rules() for alerts in application.alerts}
        """The rules, by the name of their alerts."""
        self.failed_rules: set[tuple[str, str, int]] = set()
        """The versions of rules that raised, by the name of their alerts: their dead letters are on the way."""
        for alert in application.alerts:
            self._rules_of[alert.rules.name].append(self.rules[alert.name])

    @property
    def topics(self) -> list[str]:
        """The topics of the tables."""
        return list(self._rows)

    def apply(self, records: Iterable[Record]) -> list[RowChange]:
        """Apply the next records of the topics; return what has changed."""
        return [change for record in records for change in self._applied(record)]

    def dead_letters(self, partition: int, partitions: int) -> list[Output]:
        """Return the dead letters that the worker of one of so many partitions of snapshots has not reported yet.

        A table may have more partitions than the snapshots.
        """
        return [dead_letter for number, dead_letter in self._unreported if number % partitions == partition]

    def reported(self, dead_letters: Collection[Output]) -> None:
        """Drop these dead letters: they are written. Bad records that have come since have theirs still."""
        written = set(dead_letters)
        self._unreported = [found for found in self._unreported if found[1] not in written]

    def _applied(self, record: Record) -> Iterator[RowChange]:
        table, place = self._rows[record.topic], (record.topic, record.partition)
        if record.offset < self._next.get(place, 0):  # the topic was made anew, and has none of its former rows
            for key in table.forget(record.partition):
                yield self._changed(table, key)
        self._next[place] = record.offset + 1
        try:
            key = table.apply(record)
        except ValueError as error:
            log.warning("no row at %s of %s: %s", record.offset, record.topic, error)
            self._unreported.append((record.partition, self._dead_letter(record, str(error))))
        else:
            yield self._changed(table, key)

    def _changed(self, table: TableRows, key: str) -> RowChange:
        name, row = table.table.name, table.rows.get(key)
        if row is None:
            self.values[name].pop(key, None)
        else:
            self.values[name][key] = row.value
        for rules in self._rules_of[name]:
            rules.change(key, row)
        return RowChange(name, key)

    def _dead_letter(self, record: Record, problem: str) -> Output:
        dead_letter = DeadLetter.of(record, Reason.INVALID_ROW, problem)
        return Output(self._dead_letters, shortened(record.key), dead_letter.encode())
