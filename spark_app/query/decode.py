"""Decodes a record's bytes to typed fields or a reason of refusal, by the rules of contracts/records/shape.py."""

import secrets
from collections.abc import Mapping
from datetime import datetime
from itertools import chain

from pydantic import BaseModel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name that PySpark's users know

from contracts.model.application import Application
from contracts.records.document import LONE_SURROGATE
from contracts.records.record import Reason
from contracts.records.refusal import (
    HALF_A_CHARACTER,
    NON_NUMBER,
    NON_NUMBERS,
    NOT_AN_OBJECT,
    invalid,
    mistyped,
    oversized_sql,
)
from contracts.types.bounds import bounds, instant_sql, needed
from contracts.types.columns import sql_type, text, without_none
from spark_app.query.columns import REASON, TEXT, field_column, given_column

MARK = f"mark_{secrets.token_hex(8)}"
"""A name that no sender can know. The parser stops after the first JSON value, whatever follows; but nothing inside a
record that is wrapped as {MARK:[record,{MARK:1}]} can close the list early without losing the mark at its end."""
WRAPPED = f"""concat('{{"{MARK}":[', text, ',{{"{MARK}":1}}]}}')"""
HALF = f"(contains(text, '\\\\u') AND text RLIKE {text(LONE_SURROGATE)})"
STRICT = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": "malformed",
    "allowNonNumericNumbers": "false",
    "allowSingleQuotes": "false",
}


def decoded(records: DataFrame, shape: type[BaseModel], application: Application) -> DataFrame:
    """Kafka's records with a column for each field of the shape, and the reason of refusal.

    Times become timestamps; a field of a refused record may be anything.
    """
    largest = application.largest_record
    texts = records.withColumn(TEXT, F.expr(f"CASE WHEN length(value) <= {largest} THEN CAST(value AS STRING) END"))
    parsed = texts.withColumn("parsed", F.expr(_parsed(WRAPPED, _kinds(shape))))
    broken = F.expr(f"{_is_broken('parsed')} OR {HALF}")
    records = parsed.withColumn("record", F.expr(f"get(parsed.{MARK}, 0)"))
    fields = records.select(*texts.columns, broken.alias("malformed"), *_fields(shape))
    return fields.withColumn(REASON, F.expr(_reason(shape, largest)))


def refused(reason: Reason, detail: str = "CAST(NULL AS STRING)") -> str:
    """Return the SQL of the reason of a refused record. The detail is SQL too."""
    return f"struct({text(reason.value)} AS reason, {detail} AS detail)"


def _kinds(shape: type[BaseModel]) -> dict[str, str]:
    return {name: sql_type(field.annotation, name, times="STRING") for name, field in shape.model_fields.items()}


def _parsed(wrapped: str, kinds: Mapping[str, str]) -> str:
    """The SQL that parses a wrapped record by these fields."""
    fields = ", ".join(f"`{name}`: {kind}" for name, kind in kinds.items())
    schema = text(f"{MARK} ARRAY<STRUCT<{fields}, {MARK}: INT>>, malformed STRING")
    return f"from_json({wrapped}, {schema}, map({', '.join(map(text, chain(*STRICT.items())))}))"


def _is_broken(parsed: str) -> str:
    """The SQL of whether a record was not one JSON object of the types that it was parsed by."""
    return (
        f"{parsed}.malformed IS NOT NULL OR get({parsed}.{MARK}, 0) IS NULL"
        f" OR size({parsed}.{MARK}) != 2 OR get({parsed}.{MARK}, 1).{MARK} IS NULL"
    )


def _described(shape: type[BaseModel]) -> str:
    """The SQL of the detail of a malformed record, each field of which is parsed by itself.

    Inside `transform` it is interpreted, not compiled: it adds nothing to the code that every record runs through.
    """
    texts = _parsed("wrapped", dict.fromkeys(shape.model_fields, "STRING"))
    is_no_object = f"exists(array({texts}), parsed -> {_is_broken('parsed')})"
    cases = [
        (HALF, HALF_A_CHARACTER),
        (f"{is_no_object} AND text RLIKE {text(NON_NUMBER)}", NON_NUMBERS),
        (is_no_object, NOT_AN_OBJECT),
    ] + [
        (
            f"{_parsed('wrapped', {name: kind})}.malformed IS NOT NULL",
            mistyped(name, shape.model_fields[name].annotation),
        )
        for name, kind in _kinds(shape).items()
    ]
    whens = " ".join(f"WHEN {condition} THEN {text(detail)}" for condition, detail in cases)
    return f"get(transform(array({WRAPPED}), wrapped -> CASE {whens} END), 0)"


def _fields(shape: type[BaseModel]) -> list[Column]:
    return [
        F.expr(instant_sql(f"record.`{name}`") if _is_time(field.annotation) else f"record.`{name}`").alias(
            field_column(name)
        )
        for name, field in shape.model_fields.items()
    ] + [
        F.expr(f"record.`{name}` IS NOT NULL").alias(given_column(name))
        for name, field in shape.model_fields.items()
        if _is_time(field.annotation) and not needed(field)
    ]


def _is_time(annotation: object) -> bool:
    return without_none(annotation)[0] is datetime


def _reason(shape: type[BaseModel], largest: int) -> str:
    cases = [
        ("value IS NULL OR length(value) = 0", refused(Reason.EMPTY)),
        (f"length(value) > {largest}", refused(Reason.OVERSIZED, oversized_sql("value", largest))),
        ("NOT is_valid_utf8(text)", refused(Reason.NOT_UTF8)),
        ("malformed", refused(Reason.MALFORMED, _described(shape))),
    ]
    conditions = bounds(shape)
    for name, field in shape.model_fields.items():
        broken = [f"NOT ({bound.sql(field_column(name))})" for bound in conditions[name]]
        if needed(field):
            broken.insert(0, f"{field_column(name)} IS NULL")
        elif _is_time(field.annotation):
            broken.insert(0, f"{given_column(name)} AND {field_column(name)} IS NULL")
        if broken:
            cases.append((" OR ".join(broken), refused(Reason.INVALID_FIELD, text(invalid(name, field)))))
    return f"CASE {' '.join(f'WHEN {condition} THEN {reason}' for condition, reason in cases)} END"
