"""Rows of reference tables: their encoding, and the content of a table after the records of its topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from pydantic import ValidationError, create_model

from contracts.errors import AUTHOR_ERRORS, described
from contracts.records.numbers import unwritable
from contracts.types.key import LARGEST_KEY
from contracts.wire.table import TableRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pydantic import BaseModel

    from contracts.model.table import Table
    from contracts.records.record import Record


class TableRow(NamedTuple):
    """A row of a table, as the model of the table has read it."""

    version: int
    """The offset of its record."""
    value: BaseModel
    author: str | None
    changed_at: datetime
    partition: int = 0
    """The partition of its record."""


class FieldProblem(NamedTuple):
    """A problem of a field of a row. `field` is a dotted path; empty for the row as a whole."""

    field: str
    detail: str


class RowRejectedError(ValueError):
    """The model of the table rejects the value."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        super().__init__("; ".join(f"{problem.field or 'value'}: {problem.detail}" for problem in problems))
        self.problems = problems


def check_row_key(key: str) -> None:
    """Raise ValueError for a key that no row may have."""
    if not 0 < (size := len(key.encode())) <= LARGEST_KEY:
        raise ValueError(f"the key has {size} bytes, and 1 to {LARGEST_KEY} are allowed")


def parse_row(table: Table, key: str, value: bytes | str) -> BaseModel:
    """Return a row from its JSON. Raises ValueError for a key, and RowRejectedError for a value that does not fit.

    A value that no record can have, such as NaN or 1e400, does not fit: readers of the table would reject its record.
    """
    check_row_key(key)
    row = _validated(table, value)
    if problems := [FieldProblem(*problem) for problem in unwritable(row.model_dump())]:
        raise RowRejectedError(problems)
    _validated(table, orjson.dumps(_on_the_wire(row)))
    return row


def encode_row(table: Table, key: str, value: bytes | str, author: str | None) -> bytes:
    """Return the record of a row from its JSON. Raises as `parse_row`."""
    row = parse_row(table, key, value)
    return TableRecord(value=_on_the_wire(row), author=author).encode()


def decode_row(table: Table, record: Record) -> TableRow:
    """Return the row of a record. Raises ValueError for a value that the table does not take."""
    try:
        table_record = TableRecord.model_validate(orjson.loads(record.value or b""))
    except ValidationError as error:
        raise RowRejectedError(_problems(error)) from error
    try:
        written = orjson.dumps(table_record.value)
    except TypeError as error:  # orjson reads deeper values than it writes
        raise RowRejectedError([FieldProblem("", "is nested too deeply")]) from error
    value = _validated(table, written)
    return TableRow(record.offset, value, table_record.author, record.timestamp, record.partition)


class TableRows:
    """The present rows of a table, by key."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._rows: dict[str, TableRow] = {}

    @property
    def rows(self) -> Mapping[str, TableRow]:
        """The present rows."""
        return self._rows

    def apply(self, record: Record) -> str:
        """Read the next record of the topic, and return its key. Raises ValueError for a bad one, which is left out."""
        if record.key is None:
            raise ValueError("has no key")
        key = record.key.decode()
        if record.value is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = decode_row(self.table, record)
        return key

    def forget(self, partition: int) -> list[str]:
        """Remove the rows of a partition, and return their keys."""
        keys = [key for key, row in self._rows.items() if row.partition == partition]
        for key in keys:
            del self._rows[key]
        return keys


def table_shape(table: Table) -> type[TableRecord]:
    """The model of a table's records."""
    value: dict[str, Any] = {"value": (table.model, ...)}
    return create_model(f"{table.model.__name__}Record", __base__=TableRecord, **value)


def _validated(table: Table, value: bytes | str) -> BaseModel:
    try:
        return table.model.model_validate_json(value)
    except ValidationError as error:
        raise RowRejectedError(_problems(error)) from error
    except AUTHOR_ERRORS as error:  # pydantic passes other errors of a validator on
        raise RowRejectedError([FieldProblem("", described(error))]) from error


def _on_the_wire(row: BaseModel) -> dict[str, Any]:
    return row.model_dump(mode="json", exclude_none=True)


def _problems(error: ValidationError) -> list[FieldProblem]:
    return [FieldProblem(".".join(map(str, problem["loc"])), problem["msg"]) for problem in error.errors()]
