"""Checks of what a processor writes to a state variable, by the variable's schema.

Spark stores a null for a value of another type, without an error.
"""

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


def checked(value: Any, schema: StructType, variable: str) -> tuple[Any, ...]:
    """Return the value of a variable as a tuple. Raises TypeError if a field is not of its type."""
    if not isinstance(value, tuple):
        raise TypeError(f"{variable} takes a tuple of {schema.names}, not {value!r}")
    if len(value) != len(schema):
        raise TypeError(f"{variable} takes {len(schema)} values, {schema.names}, not {len(value)}")
    for field, one in zip(schema, value, strict=True):
        if not fits(one, field.dataType):
            raise TypeError(f"{variable}.{field.name} is {field.dataType.simpleString()}, not {one!r}")
    return tuple(value)


def fits(value: Any, kind: DataType) -> bool:
    """Return whether Spark stores this value as it is."""
    if value is None:
        return True
    if isinstance(kind, StructType):
        return isinstance(value, tuple) and len(value) == len(kind) and _all(zip(value, kind, strict=True))
    if isinstance(kind, ArrayType):
        return isinstance(value, list) and all(fits(one, kind.elementType) for one in value)
    if isinstance(kind, MapType):
        pairs = value.items() if isinstance(value, dict) else ()
        return isinstance(value, dict) and all(fits(k, kind.keyType) and fits(v, kind.valueType) for k, v in pairs)
    if bits := BITS.get(type(kind)):
        return isinstance(value, int) and not isinstance(value, bool) and -(1 << bits - 1) <= value < 1 << bits - 1
    return isinstance(value, SCALARS[type(kind)])


def _all(fields: Any) -> bool:
    return all(fits(value, field.dataType) for value, field in fields)
