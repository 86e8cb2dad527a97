"""Checks the values that a processor writes to a state variable, by the variable's schema.

Spark stores a null for a value of another type, without an error.
"""

import math
import struct
from collections.abc import Callable
from typing import Any

from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
)

NESTED = (StructType, ArrayType, MapType)
SINGLE = struct.Struct("<f")
LARGEST_SINGLE = 3.4028235677973362e38
"""Numbers from here on, between the largest FLOAT and the next one that there would be, are infinite as a FLOAT."""


def unsupported(schema: DataType) -> DataType | None:
    """Return the first type in a schema that a variable cannot have; None for a schema of which each type is known."""
    if isinstance(schema, StructType):
        return next((kind for field in schema if (kind := unsupported(field.dataType))), None)
    if isinstance(schema, ArrayType):
        return unsupported(schema.elementType)
    if isinstance(schema, MapType):
        return unsupported(schema.keyType) or unsupported(schema.valueType)
    return None if type(schema) in LEAVES else schema


class ValueCheck:
    """Checks the values of one variable, or the keys of a map, and gives each the form in which Spark returns it."""

    def __init__(self, schema: StructType, variable: str) -> None:
        self._schema = schema
        self._variable = variable
        self._fits = fits(schema)
        self._fields = [form(field.dataType) for field in schema]
        self._is_flat = not any(isinstance(field.dataType, NESTED) for field in schema)

    def __call__(self, value: Any) -> tuple[Any, ...]:
        """Return the value in its form. Raises TypeError if it is no tuple, or has a field of another type."""
        if value is not None and self._fits(value):
            return self.formed(value)
        raise TypeError(f"{self._variable} takes a tuple of {self._schema.simpleString()}, not {value!r}")

    def formed(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a new tuple of the value in its form. It is the same in the batch of the write and in later ones."""
        return tuple(map(_apply, self._fields, value))

    def given(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a value in its form for the processor, which may change its lists and maps in place."""
        return value if self._is_flat else self.formed(value)


def form(kind: DataType) -> Callable[[Any], Any]:
    """Return a function that copies a value into the form in which Spark returns it.

    A struct is a Row, a map has the order of its keys, bytes are `bytes`, and a FLOAT has its precision.
    """
    if isinstance(kind, StructType):
        made, fields = Row(*kind.names), [form(field.dataType) for field in kind]
        return lambda value: None if value is None else made(*map(_apply, fields, value))
    if isinstance(kind, ArrayType):
        element = form(kind.elementType)
        return lambda value: None if value is None else [element(item) for item in value]
    if isinstance(kind, MapType):
        key, item = form(kind.keyType), form(kind.valueType)
        return lambda value: None if value is None else {key(k): item(value[k]) for k in sorted(value, key=rank)}
    if isinstance(kind, BinaryType):
        return lambda value: None if value is None else bytes(value)
    if isinstance(kind, FloatType):
        return lambda value: None if value is None else SINGLE.unpack(SINGLE.pack(value))[0]
    return lambda value: value


def _apply(function: Callable[[Any], Any], value: Any) -> Any:
    return function(value)


def rank(value: Any) -> tuple[Any, ...]:
    """Return a key by which the keys of a map are ordered: nulls first, NaN last."""
    if value is None:
        return (0,)
    if isinstance(value, tuple | list):
        return (1, tuple(map(rank, value)))
    return (2,) if value != value else (1, value)  # noqa: PLR0124  # NaN differs from itself


def fits(kind: DataType) -> Callable[[Any], bool]:
    """Return a function of a value: whether Spark stores it as it is. A null always fits."""
    if isinstance(kind, StructType):
        return _struct([fits(field.dataType) for field in kind])
    if isinstance(kind, ArrayType):
        element = fits(kind.elementType)
        return lambda value: value is None or (isinstance(value, list) and all(map(element, value)))
    if isinstance(kind, MapType):
        return _map(fits(kind.keyType), fits(kind.valueType))
    leaf = LEAVES[type(kind)]
    return lambda value: value is None or leaf(value)


def _is_utf8(value: Any) -> bool:
    """Return whether a text can be stored: half of a surrogate pair cannot."""
    try:
        return isinstance(value, str) and (value.isascii() or bool(value.encode()))
    except UnicodeEncodeError:
        return False


def _is_single(value: Any) -> bool:
    """Return whether a number can be stored as a FLOAT: a finite one must not become infinite."""
    return isinstance(value, float) and not LARGEST_SINGLE <= abs(value) < math.inf


def _struct(fields: list[Callable[[Any], bool]]) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        if value is None:
            return True
        return (
            isinstance(value, tuple)
            and len(value) == len(fields)
            and all(field(item) for field, item in zip(fields, value, strict=True))
        )

    return check


def _map(key: Callable[[Any], bool], value: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def check(mapping: Any) -> bool:
        return mapping is None or (isinstance(mapping, dict) and all(key(k) and value(v) for k, v in mapping.items()))

    return check


def _whole(bits: int) -> Callable[[Any], bool]:
    bound = 1 << bits - 1
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound


LEAVES: dict[type[DataType], Callable[[Any], bool]] = {
    ByteType: _whole(8),
    ShortType: _whole(16),
    IntegerType: _whole(32),
    LongType: _whole(64),
    StringType: _is_utf8,
    BooleanType: lambda value: isinstance(value, bool),
    BinaryType: lambda value: isinstance(value, bytes | bytearray),
    FloatType: _is_single,
    DoubleType: lambda value: isinstance(value, float),
}
"""Whether Spark stores a value of a type as it is."""
