"""Rows of reference tables, against a plain dictionary."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Self

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from contracts import DeclarationError, Table
from contracts.records.record import Record, timestamp_ms
from contracts.records.tables import RowRejectedError, TableRows, decode_row, encode_row, parse_row
from contracts.types.columns import models
from contracts.types.key import LARGEST_KEY

if TYPE_CHECKING:
    from collections.abc import Callable

AT = datetime(2026, 5, 1, tzinfo=UTC)


class Limit(BaseModel):
    model_config = ConfigDict(extra="forbid")

    speed: float = Field(gt=0)


LIMITS = Table("limits", Limit)
BAD = (b"", b"{", b"[]", b'{"value": 1}', b'{"value": {}}', b'{"value": {"speed": -1}}', b'{"value": {"sped": 1}}')


def _record(offset: int, key: bytes | None, value: bytes | None) -> Record:
    return Record("limits", 0, offset, timestamp_ms(AT), key, value)


def _row(speed: float) -> bytes:
    return encode_row(LIMITS, "k", orjson.dumps({"speed": speed}), "ann")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.one_of(st.none(), st.sampled_from(BAD), st.floats(0.1, 100).map(_row)),
        )
    )
)
def test_the_table_has_the_last_good_row_of_each_key(records: list[tuple[str, bytes | None]]) -> None:
    table, expected = TableRows(LIMITS), dict[str, tuple[int, float]]()
    for offset, (key, value) in enumerate(records):
        if value in BAD:
            with pytest.raises(ValueError, match=r"."):
                table.apply(_record(offset, key.encode(), value))
            continue
        assert table.apply(_record(offset, key.encode(), value)) == key
        if value is None:
            expected.pop(key, None)
        else:
            expected[key] = offset, orjson.loads(value)["value"]["speed"]
    rows = {key: (row.version, row.value) for key, row in table.rows.items()}
    assert rows == {key: (version, Limit(speed=speed)) for key, (version, speed) in expected.items()}


def test_a_row_has_its_author_and_its_time() -> None:
    table = TableRows(LIMITS)
    table.apply(_record(3, b"k", _row(1.5)))
    assert table.rows["k"] == (3, Limit(speed=1.5), "ann", AT, 0)


@pytest.mark.parametrize("key", [None, b"\xff"])
def test_a_record_needs_a_key_of_text(key: bytes | None) -> None:
    with pytest.raises(ValueError, match=r"key|utf-8"):
        TableRows(LIMITS).apply(_record(0, key, _row(1)))


@pytest.mark.parametrize("key", ["", "x" * (LARGEST_KEY + 1)])
def test_a_key_that_no_query_can_find_is_not_written(key: str) -> None:
    with pytest.raises(ValueError, match="1 to 500 are allowed"):
        encode_row(LIMITS, key, b'{"speed": 1}', None)


def test_a_value_that_the_model_rejects_is_not_written() -> None:
    with pytest.raises(ValueError, match="sped: Extra inputs"):
        encode_row(LIMITS, "k", b'{"speed": 1, "sped": 2}', None)


class Band(BaseModel):
    low: float
    high: float = 0.0
    steps: list[int] = []


class Hidden(Band):
    unit: str = Field(exclude=True)


@pytest.mark.parametrize(
    ("model", "value", "problem"),
    [
        (Band, '{"low": NaN}', "low: is not a finite number"),
        (Band, '{"low": 1, "high": Infinity}', "high: is not a finite number"),
        (Band, '{"low": 1, "high": -1e400}', "high: is not a finite number"),
        (Band, '{"low": 1, "steps": [1, 9223372036854775808]}', "steps.1: is an integer of more than 64 bits"),
        (Hidden, '{"low": 1, "unit": "m"}', "unit: Field required"),
        (Band, '{"low": null}', "low: Input should be a valid number"),
        (Band, '{"low": 1, "high": null}', "high: Input should be a valid number"),
    ],
)
@pytest.mark.parametrize("act", [parse_row, partial(encode_row, author="ann")])
def test_a_row_whose_record_the_table_would_reject_is_neither_tested_nor_written(
    model: type[BaseModel], value: str, problem: str, act: Callable[..., object]
) -> None:
    with pytest.raises(ValueError, match=problem):
        act(Table("bands", model), "k", value)


class Aliased(BaseModel):
    limit: float = Field(alias="max")


class Nullable(BaseModel):
    limit: float | None


class Nested(BaseModel):
    rows: list[Nullable] = []


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Aliased, "Aliased.limit: has the alias 'max'.* Name the field as the row does"),
        (Nullable, "Nullable.limit: may be null but not missing.* Write `T` if it is required"),
        (Nested, "Nullable.limit: may be null but not missing"),
    ],
)
def test_a_table_whose_rows_could_not_be_read_is_refused(model: type[BaseModel], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        Table("limits", model)


class Populated(Aliased):
    model_config = ConfigDict(populate_by_name=True)


class Serialized(Aliased):
    model_config = ConfigDict(serialize_by_alias=True)


class Either(BaseModel):
    limit: float = Field(validation_alias=AliasChoices("max", "limit"))  # type: ignore[pydantic-alias]


@pytest.mark.parametrize("model", [Populated, Serialized, Either])
def test_a_row_with_an_alias_is_written_if_it_can_be_read(model: type[BaseModel]) -> None:
    table = Table("limits", model)
    row = parse_row(table, "k", b'{"max": 1}')
    assert decode_row(table, _record(0, b"k", encode_row(table, "k", b'{"max": 1}', None))).value == row


class Filled(BaseModel):
    high: float | None = 25.0


class Clause(BaseModel):
    """A rule of rules."""

    any_of: list[Clause] = []
    low: Limit | None = None


def test_the_model_of_a_row_may_have_itself_inside() -> None:
    assert models(Clause) == (Clause, Limit)
    rule = parse_row(Table("rules", Clause), "k", b'{"any_of": [{"low": {"speed": 1}}]}')
    assert rule == Clause(any_of=[Clause(low=Limit(speed=1))])


def test_a_null_that_would_become_the_default_of_a_row_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"Filled\.high: may be null, and its default is another value"):
        Table("filled", Filled)


class Ratio(BaseModel):
    """Its validator raises no ValueError: pydantic passes other errors on."""

    high: int
    low: int

    @model_validator(mode="after")
    def check(self) -> Self:
        assert self.high // self.low
        return self


def test_a_row_on_which_a_validator_raises_any_error_is_rejected() -> None:
    table, row = Table("ratios", Ratio), b'{"high": 1, "low": 0}'
    with pytest.raises(RowRejectedError, match="ZeroDivisionError"):
        parse_row(table, "k", row)
    with pytest.raises(RowRejectedError, match="ZeroDivisionError"):
        TableRows(table).apply(_record(0, b"k", b'{"value": ' + row + b"}"))


@pytest.mark.parametrize("depth", [210, 300, 1000, 10_000])
def test_a_row_that_is_nested_deeply_is_rejected(depth: int) -> None:
    """Each of these depths fails at another parser, and with another error."""
    table = TableRows(LIMITS)
    table.apply(_record(0, b"k", _row(1.5)))
    deep = b'{"value": {"speed": ' + b"[" * depth + b"]" * depth + b"}}"
    with pytest.raises(ValueError, match=r"limit|nested too deeply"):
        table.apply(_record(1, b"k", deep))
    assert table.rows["k"].value == Limit(speed=1.5)
