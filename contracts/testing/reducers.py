"""The test kit of reducers: checks on random values that a reducer's SQL and its fold agree, and the laws of `merge`.

It needs Hypothesis and a Spark session. Both are installed with the tools for tests.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError, create_model
from pydantic_core import to_json

from contracts.model.application import LARGEST_RECORD
from contracts.records.shape import read
from contracts.types.columns import SQL_SETTINGS, sql_type, text, without_none
from contracts.wire.window_key import PATTERN

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy
    from pyspark.sql import SparkSession

    from contracts.reducers import Reducer

    Same = Callable[[Any, Any], bool]

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
TIMES = st.integers(0, 12).map(lambda n: START + timedelta(seconds=n // 2, microseconds=n % 2))
"""Few, so that several values have one time."""
WINDOW_START = START + timedelta(seconds=1)
"""An event of a device may be earlier than its initial one."""
MOST_VALUES = 12
"""The maximum number of values of one key."""
MOST_KEYS = 40
"""The maximum number of keys in one Spark job."""
EXPRESSION = "CASE WHEN x IS NOT NULL THEN x END"
"""The job, too, gives a reducer with a filter more than the name of a column."""
ROUNDING = 1e-9
"""The relative difference of two floats that the order of the merges may make."""


def check_reducer(  # noqa: PLR0913
    spark: SparkSession,
    reducer: Reducer,
    source: Any,
    values: SearchStrategy[Any],
    *,
    same: Same | None = None,
    jobs: int = 1,
    window: timedelta = timedelta(hours=1),
) -> None:
    """Check a reducer of an event field with the annotation `source`, on these values. Raises AssertionError.

    `values` are as JSON has them (a model is a dict), and are decoded as an event's field. Nulls and times are added.
    The published value must have the type that `gives` returns. SQL and fold must publish equal values; floats may
    differ by rounding if the reducer depends on the order. `same` compares the published values otherwise, for example
    a sketch's. `jobs` is the number of Spark jobs, each with up to 40 keys. The `window` starts a second after
    the first of the times, and the last of them is 6 s later.
    """
    published = _Published(reducer.within(window), source, same)
    decoded = values.map(_decoder(source))
    deltas = st.lists(st.tuples(TIMES, st.none() | decoded), max_size=MOST_VALUES)
    _check_merge(published, st.tuples(TIMES, decoded))
    _check_sql(spark.newSession(), published, deltas, jobs)


def _decoder(source: Any) -> Callable[[Any], Any]:
    """Return the function that decodes a value of an event's JSON, as for the fold."""
    shape = create_model("Values", x=(without_none(source)[0] | None, None))
    return lambda value: read(shape, to_json({"x": value}), LARGEST_RECORD)["x"]


def _check_merge(published: _Published, delta: SearchStrategy[tuple[datetime, Any]]) -> None:
    lift, merge = published.reducer.lift, published.reducer.merge

    @_settings(100, Phase.generate, Phase.shrink)
    @given(st.tuples(delta, delta, delta))
    def laws(deltas: tuple[tuple[datetime, Any], ...]) -> None:
        a, b, c = (lift(value, ts, WINDOW_START) for ts, value in deltas)
        published.expect_same(f"merge is not commutative for {deltas[:2]}", merge(a, b), merge(b, a))
        published.expect_same(f"merge is not associative for {deltas}", merge(merge(a, b), c), merge(a, merge(b, c)))

    laws()


def _check_sql(
    spark: SparkSession, published: _Published, deltas: SearchStrategy[list[tuple[datetime, Any]]], jobs: int
) -> None:
    for name, value in SQL_SETTINGS.items():
        spark.conf.set(name, value)
    reducer = published.reducer
    schema = f"key INT, ts TIMESTAMP, x {sql_type(published.source, 'x', times='TIMESTAMP')}"
    document = f"to_json(struct({reducer.sql(EXPRESSION)} AS value), map('timestampFormat', {text(PATTERN)}))"
    start = f"timestamp_seconds({int(WINDOW_START.timestamp())})"
    rows = f"SELECT *, {start} AS first_seen FROM {{deltas}}"  # noqa: S608  # a constant
    lifted = f"SELECT key, ts, {reducer.lift_sql(EXPRESSION)} AS x FROM ({rows})"  # noqa: S608  # the reducer's own SQL
    query = f"SELECT key, {document} FROM ({lifted}) GROUP BY key"  # noqa: S608  # as above

    @_settings(jobs, Phase.generate)  # to shrink an example would be hundreds of jobs
    @given(st.lists(deltas, min_size=MOST_KEYS // 4, max_size=MOST_KEYS).filter(any))  # the first would have no value
    def sql_equals_fold(keys: list[list[tuple[datetime, Any]]]) -> None:
        rows = [(key, ts, value) for key, values in enumerate(keys) for ts, value in values]
        table = spark.createDataFrame(rows, schema).repartition(2)  # so that Spark merges partial aggregates
        documents: dict[int, str] = dict(row for row in spark.sql(query, deltas=table).collect())
        for key in sorted(documents, key=lambda key: len(keys[key])):  # the first to fail is the smallest
            partials = [reducer.lift(value, ts, WINDOW_START) for ts, value in keys[key] if value is not None]
            folded = reduce(reducer.merge, partials) if partials else None
            problem = f"SQL and fold differ for {keys[key]}"
            published.expect_equal(problem, json.loads(documents[key]).get("value"), folded)

    sql_equals_fold()


class _Published:
    """The published values of one reducer: their type, and when two are equal."""

    def __init__(self, reducer: Reducer, source: Any, same: Same | None) -> None:
        self.reducer = reducer
        self.source = source
        self._kind: TypeAdapter[Any] = TypeAdapter(reducer.gives(source))
        self._same = same or (_is_close if reducer.depends_on_order else _is_equal)

    def expect_same(self, problem: str, left: Any, right: Any) -> None:
        """Raise AssertionError unless two partials are published as the same value."""
        self._expect(problem, self._folded(left), self._folded(right))

    def expect_equal(self, problem: str, document: Any, partial: Any) -> None:
        """Raise AssertionError unless Spark's JSON of a value is what a partial is published as."""
        self._expect(problem, self._typed("SQL", json.dumps(document)), self._folded(partial))

    def _expect(self, problem: str, left: Any, right: Any) -> None:
        if not self._same(left, right):
            raise AssertionError(f"{self.reducer}: {problem}: {left!r}, {right!r}")

    def _folded(self, partial: Any) -> Any:
        return self._typed("present", to_json(self.reducer.present(partial)).decode())

    def _typed(self, where: str, document: str) -> Any:
        """The value of a JSON document, as the declared type."""
        try:
            return self._kind.validate_json(document, strict=True)
        except ValidationError as error:
            raise AssertionError(f"{self.reducer}: {where} gives {document}, which is no {self._kind}") from error


def _settings(examples: int, *phases: Phase) -> settings:
    """Hypothesis' settings: how long a Spark job takes is the machine's affair."""
    silent = list(HealthCheck)
    return settings(max_examples=examples, phases=phases, deadline=None, database=None, suppress_health_check=silent)


def _is_equal(left: Any, right: Any) -> bool:
    return bool(left == right)


def _is_close(left: Any, right: Any) -> bool:
    """Equal, floats within their rounding error, at any depth."""
    match left, right:
        case float(), float():
            return math.isclose(left, right, rel_tol=ROUNDING, abs_tol=ROUNDING)
        case BaseModel(), BaseModel():
            return _is_close(left.model_dump(), right.model_dump())
        case dict(), dict():
            return left.keys() == right.keys() and all(_is_close(left[name], right[name]) for name in left)
        case list(), list():
            return len(left) == len(right) and all(map(_is_close, left, right))
    return _is_equal(left, right)
