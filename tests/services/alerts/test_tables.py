"""The rows of a worker, and the dead letters of those that it rejects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.records.record import Record
from contracts.records.tables import encode_row
from contracts.wire import DeadLetter
from services.alerts.tables import Tables
from tests.services.derive.alerted import APP, LIMITS, Limit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from services.runtime.kafka.values import Output


def bad_row(partition: int, offset: int) -> Record:
    return Record("limits", partition, offset, 0, b"r", b'{"value": {"high": "much"}}')


def row(partition: int, offset: int, key: str) -> Record:
    value = encode_row(LIMITS, key, Limit(high=1, low=1).model_dump_json(), None)
    return Record("limits", partition, offset, 0, key.encode(), value)


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


def test_a_topic_that_was_made_anew_has_none_of_its_former_rows() -> None:
    tables = Tables(APP)
    written = [(0, 0, "a"), (0, 1, "b"), (1, 0, "c"), (0, 0, "b")]
    changed = [tables.apply([row(*place)]) for place in written]
    assert [[change.key for change in changes] for changes in changed] == [["a"], ["b"], ["c"], ["a", "b", "b"]]
    assert tables.values["limits"].keys() == set(tables.rules["too_high"].names()) == {"b", "c"}
