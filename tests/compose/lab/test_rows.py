from __future__ import annotations

from datetime import UTC, datetime

import pytest

from contracts.records.named_states import named_in
from examples.departures.application import suite
from tests.compose.lab.rows.__main__ import Rows, differences, named

ANSWERS = {"a": {"version": 2}, "b": {"version": 1}}


def test_stores_with_the_rows_of_the_query_service_have_no_difference() -> None:
    assert differences("flights", ANSWERS, {"Redis": dict(ANSWERS), "PostgreSQL": dict(ANSWERS)}) == ""


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [({"a": {"version": 2}}, "b"), (ANSWERS | {"a": {"version": 1}}, "a"), (ANSWERS | {"c": {}}, "c")],
)
def test_a_row_that_is_missing_old_or_too_many_is_a_difference(rows: Rows, wrong: str) -> None:
    found = differences("flights", ANSWERS, {"Redis": ANSWERS, "PostgreSQL": rows})
    assert found == f"flights in PostgreSQL: 1 differ: ['{wrong}']"


def test_stores_cannot_agree_while_the_query_service_answers_nothing() -> None:
    assert differences("flights", {}, {"Redis": {}, "PostgreSQL": {}}) == "flights: no answers"


def test_a_row_of_a_window_is_named_as_in_redis() -> None:
    states, start = named_in(suite), datetime(2013, 1, 1, 10, tzinfo=UTC)
    assert named(states["flights"], "a", start) == "a"
    assert named(states["departures"], "JFK", start) == "JFK@2013-01-01T10:00:00.000000Z"
