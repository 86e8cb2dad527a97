"""The dead letters of the rows that a worker rejects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.records.record import Record
from contracts.wire import DeadLetter
from services.alerts.tables import Tables
from tests.services.derive.alerted import APP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from services.runtime.kafka.values import Output


def bad_row(partition: int, offset: int) -> Record:
    return Record("limits", partition, offset, 0, b"r", b'{"value": {"high": "much"}}')


def offsets(dead_letters: Iterable[Output]) -> list[int]:
    return [DeadLetter.model_validate_json(output.value or b"").offset for output in dead_letters]


def test_a_row_that_comes_while_others_are_reported_has_a_dead_letter_too() -> None:
    tables = Tables(APP)
    tables.apply([bad_row(0, 4), bad_row(1, 7)])
    written = tables.dead_letters(0, 2)
    tables.apply([bad_row(0, 5)])
    tables.reported(written)
    assert offsets(written) == [4]
    assert offsets(tables.dead_letters(0, 2)) == [5]
    assert offsets(tables.dead_letters(1, 2)) == [7]


def test_a_table_may_have_more_partitions_than_the_snapshots() -> None:
    tables = Tables(APP)
    tables.apply([bad_row(number, number) for number in range(5)])
    assert [offsets(tables.dead_letters(number, 2)) for number in range(2)] == [[0, 2, 4], [1, 3]]
