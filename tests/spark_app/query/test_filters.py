"""Random filters on random rows: Spark's three-valued result equals Python's."""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import zip_longest
from operator import and_, or_
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from contracts import Filter, field
from contracts.types.filters import FieldReference

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SCHEMA = "name STRING, load BIGINT, speed DOUBLE, on BOOLEAN, due TIMESTAMP"
WIDE = 1 << 53
"""From here on, not every whole number is a float."""

texts = st.sampled_from(["", "a", "B", "é", "e\u0301", "\uffff", "𝄞", "it's", "a\nb", "\\n", "%", "\0"]) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=3
)
wholes = st.sampled_from([0, 1, -1, WIDE, WIDE + 1, -WIDE - 1, (1 << 63) - 1, -(1 << 63)]) | st.integers(-3, 3)
finite = st.sampled_from([0.0, -0.0, 0.5, 1.0, -1.0, 1e-320, 1.7e308, float(WIDE)]) | st.floats(allow_nan=False).filter(
    math.isfinite
)
floats = finite | st.sampled_from([math.nan, math.inf, -math.inf])
times = st.sampled_from([NOW, NOW + timedelta(microseconds=1), datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)])
operands: dict[str, st.SearchStrategy[Any]] = {
    "name": texts,
    "load": wholes | finite,
    "speed": finite | wholes,
    "on": st.booleans(),
    "due": times,
}
rows = st.fixed_dictionaries(
    {},
    optional={
        name: st.none() | kind
        for name, kind in {"name": texts, "load": wholes, "speed": floats, "on": st.booleans(), "due": times}.items()
    },
)


COMPARISONS: dict[str, Callable[[FieldReference, Any], Filter]] = {
    "==": lambda reference, operand: reference == operand,
    "!=": lambda reference, operand: reference != operand,
    "<": lambda reference, operand: reference < operand,
    "<=": lambda reference, operand: reference <= operand,
    ">": lambda reference, operand: reference > operand,
    ">=": lambda reference, operand: reference >= operand,
}


@st.composite
def conditions(draw: st.DrawFn) -> Filter:
    """A filter of one field."""
    name = draw(st.sampled_from(sorted(operands)))
    reference, operand = field(name), operands[name]
    return draw(
        st.one_of(
            st.builds(
                lambda compare, value: compare(reference, value), st.sampled_from([*COMPARISONS.values()]), operand
            ),
            st.lists(operand, min_size=1, max_size=12).map(lambda some: reference.is_in(*some)),
            st.sampled_from([reference.is_null(), reference.is_not_null()]),
        )
    )


filters = st.recursive(
    conditions(),
    lambda inner: st.one_of(
        inner.map(lambda condition: ~condition),
        st.lists(inner, min_size=2, max_size=3).map(lambda some: reduce(and_, some)),
        st.lists(inner, min_size=2, max_size=3).map(lambda some: reduce(or_, some)),
    ),
    max_leaves=6,
)


@settings(max_examples=8)
@given(st.lists(filters, min_size=20, max_size=60), st.lists(rows, min_size=15, max_size=40))
def test_spark_and_python_give_the_same_of_true_false_and_null(
    spark: SparkSession, declared: list[Filter], values: list[dict[str, Any]]
) -> None:
    columns = [column.strip().split()[0] for column in SCHEMA.split(",")]
    table = spark.createDataFrame([tuple(row.get(name) for name in columns) for row in values], SCHEMA)
    table_rows = table.selectExpr(
        *(f"{condition.sql(str)} AS c{number}" for number, condition in enumerate(declared))
    ).collect()
    for row, results in zip(values, table_rows, strict=True):
        for number, condition in enumerate(declared):
            assert results[number] is condition.matches(row), f"{condition!r} of {row}"


def test_numbers_at_the_edges_compare_alike(spark: SparkSession) -> None:
    whole = [0, WIDE, WIDE + 1, -WIDE - 1, (1 << 63) - 1, -(1 << 63)]
    floating = [0.0, -0.0, float(WIDE), -float(WIDE), float(1 << 63), 0.5, math.nan, math.inf, -math.inf]
    operands = [*whole, *filter(math.isfinite, floating)]
    declared = [
        compare(field(name), operand)
        for name in ("load", "speed")
        for operand in operands
        for compare in COMPARISONS.values()
    ]
    values = [{"load": load, "speed": speed} for load, speed in zip_longest(whole, floating)]
    table = spark.createDataFrame([(row["load"], row["speed"]) for row in values], "load BIGINT, speed DOUBLE")
    table_rows = table.selectExpr(
        *(f"{condition.sql(str)} AS c{number}" for number, condition in enumerate(declared))
    ).collect()
    for row, results in zip(values, table_rows, strict=True):
        assert {repr(condition): condition.matches(row) for condition in declared} == dict(
            zip(map(repr, declared), results, strict=True)
        )


def test_a_column_may_have_any_name(spark: SparkSession) -> None:
    (row,) = (
        spark.sql("SELECT 'JFK' AS `the origin`")
        .selectExpr((field("x") == "JFK").sql(lambda _: "`the origin`"))
        .collect()
    )
    assert row[0] is True
