"""Checks the values that a processor writes to a state variable, by the variable's schema.

Spark stores a null for a value of another type, without an error.
"""

from collections.abc import Callable
from typing import Any

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

BITS: dict[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
SCALARS: dict[type[DataType], tuple[type, ...]] = {
    StringType: (str,),
    BooleanType: (bool,),
    BinaryType: (bytes, bytearray),
    FloatType: (float,),
    DoubleType: (float,),
}


def unsupported(schema: DataType) -> DataType | None:
    """Return the first type in a schema that a variable cannot have; None for a schema of which each type is known."""
    if isinstance(schema, StructType):
        return next((found for field in schema if (found := unsupported(field.dataType))), None)
    if isinstance(schema, ArrayType):
        return unsupported(schema.elementType)
    if isinstance(schema, MapType):
        return unsupported(schema.keyType) or unsupported(schema.valueType)
    return None if type(schema) in BITS.keys() | SCALARS.keys() else schema


class ValueCheck:
    """Checks the values of one variable, or the keys of a map."""

    def __init__(self, schema: StructType, variable: str) -> None:
        self._schema = schema
        self._variable = variable
        self._fits = fits(schema)

    def __call__(self, value: Any) -> tuple[Any, ...]:
        """Return the value, a tuple. Raises TypeError if it is none, or has a field of another type."""
        if value is not None and self._fits(value):
            return tuple(value)
        raise TypeError(f"{self._variable} takes a tuple of {self._schema.simpleString()}, not {value!r}")


def fits(kind: DataType) -> Callable[[Any], bool]:
    """Return a function of a value: whether Spark stores it as it is. A null always fits."""
    if isinstance(kind, StructType):
        return _struct([fits(field.dataType) for field in kind])
    if isinstance(kind, ArrayType):
        element = fits(kind.elementType)
        return lambda value: value is None or (isinstance(value, list) and all(map(element, value)))
    if isinstance(kind, MapType):
        return _map(fits(kind.keyType), fits(kind.valueType))
    if bits := BITS.get(type(kind)):
        return _whole(1 << bits - 1)
    allowed = SCALARS[type(kind)]
    return lambda value: value is None or isinstance(value, allowed)


def _struct(fields: list[Callable[[Any], bool]]) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        if value is None:
            return True
        return (
            isinstance(value, tuple)
            and len(value) == len(fields)
            and all(field(one) for field, one in zip(fields, value, strict=True))
        )

    return check


def _map(key: Callable[[Any], bool], value: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def check(found: Any) -> bool:
        return found is None or (isinstance(found, dict) and all(key(k) and value(v) for k, v in found.items()))

    return check


def _whole(bound: int) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        return value is None or (isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound)

    return check
