"""Decode: from a record's bytes to typed fields and a verdict, in native expressions (contracts/shape.py in Spark)."""

import secrets
from datetime import datetime

from pydantic import BaseModel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name that PySpark's users know

from contracts.application import Application
from contracts.bounds import bounds, instant_sql, needed
from contracts.columns import sql_type, text, without_none
from contracts.document import LONE_SURROGATE
from contracts.record import Reason

MARK = f"mark_{secrets.token_hex(8)}"
"""A name that no sender can know. The parser stops after the first JSON value, whatever follows; but nothing inside a
record that is wrapped as {MARK:[record,{MARK:1}]} can close the list early without losing the mark at its end."""
STRICT = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": "malformed",
    "allowNonNumericNumbers": "false",
    "allowSingleQuotes": "false",
}


def decoded(records: DataFrame, shape: type[BaseModel], application: Application) -> DataFrame:
    """Kafka's records with a column for each field of the shape, as `f_<name>`, and `reason`, null for a good one.

    `reason` is a struct of reason and detail. Times become timestamps; a field of a refused record may be anything.
    """
    largest = application.largest_record
    texts = records.withColumn("text", F.expr(f"CASE WHEN length(value) <= {largest} THEN CAST(value AS STRING) END"))
    parsed = texts.withColumn("parsed", _parse(shape)).withColumn("record", F.expr(f"get(parsed.{MARK}, 0)"))
    fields = parsed.select(*texts.columns, _malformed().alias("malformed"), *_fields(shape))
    return fields.withColumn("reason", F.expr(_verdict(shape, largest)))


def refused(reason: Reason, detail: str | None = None) -> str:
    """The SQL of a verdict."""
    described = "CAST(NULL AS STRING)" if detail is None else text(detail)
    return f"struct({text(reason.value)} AS reason, {described} AS detail)"


def _parse(shape: type[BaseModel]) -> Column:
    kinds = ", ".join(
        f"`{name}`: {sql_type(field.annotation, name, times='STRING')}" for name, field in shape.model_fields.items()
    )
    schema = f"{MARK} ARRAY<STRUCT<{kinds}, {MARK}: INT>>, malformed STRING"
    wrapped = F.concat(F.lit(f'{{"{MARK}":['), F.col("text"), F.lit(f',{{"{MARK}":1}}]}}'))
    return F.from_json(wrapped, schema, STRICT)


def _malformed() -> Column:
    return F.expr(
        f"parsed.malformed IS NOT NULL OR record IS NULL"
        f" OR size(parsed.{MARK}) != 2 OR get(parsed.{MARK}, 1).{MARK} IS NULL"
        f" OR (contains(text, '\\\\u') AND text RLIKE {text(LONE_SURROGATE)})"
    )


def _fields(shape: type[BaseModel]) -> list[Column]:
    return [
        F.expr(instant_sql(f"record.`{name}`") if _is_time(field.annotation) else f"record.`{name}`").alias(f"f_{name}")
        for name, field in shape.model_fields.items()
    ] + [
        F.expr(f"record.`{name}` IS NOT NULL").alias(f"given_{name}")
        for name, field in shape.model_fields.items()
        if _is_time(field.annotation) and not needed(field)
    ]


def _is_time(annotation: object) -> bool:
    return without_none(annotation)[0] is datetime


def _verdict(shape: type[BaseModel], largest: int) -> str:
    cases = [
        ("value IS NULL OR length(value) = 0", refused(Reason.EMPTY)),
        (f"length(value) > {largest}", refused(Reason.OVERSIZED)),
        ("NOT is_valid_utf8(text)", refused(Reason.NOT_UTF8)),
        ("malformed", refused(Reason.MALFORMED)),
    ]
    conditions = bounds(shape)
    for name, field in shape.model_fields.items():
        broken = [f"NOT ({bound.sql(f'f_{name}')})" for bound in conditions[name]]
        if needed(field):
            broken.insert(0, f"f_{name} IS NULL")
        elif _is_time(field.annotation):
            broken.insert(0, f"given_{name} AND f_{name} IS NULL")
        if broken:
            cases.append((" OR ".join(broken), refused(Reason.INVALID_FIELD, name)))
    return f"CASE {' '.join(f'WHEN {condition} THEN {verdict}' for condition, verdict in cases)} END"
