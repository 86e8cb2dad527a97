"""The merge step of an application with a processor, on DataFrames: deltas to a row for each changed window.

Deltas and results cross between the JVM and Python as JSON, in one column: PySpark converts cell by cell, which costs
a microsecond each, and makes an Arrow batch for each key, which costs five for each column.
"""

from datetime import datetime
from importlib import import_module

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contracts.model.application import Application
from contracts.model.processor import Processor
from contracts.model.tracing import FIELD
from contracts.types.columns import sql_type, without_none
from spark_app.errors import MissingPackageError
from spark_app.query.columns import (
    DEAD_LETTER,
    DEVICE_ID,
    DEVICE_PARTITION,
    EVENT_OFFSET,
    FIRST_SEEN,
    RECORD_OFFSET,
    RECORD_PARTITION,
    RECORD_TIME,
    RECORD_TOPIC,
    answer_column,
    delta_types,
    event_column,
    event_fields,
    state_column,
)
from spark_app.query.lift import TIMESTAMP_FORMAT
from spark_app.query.observations import observe_failures
from spark_app.query.processor.adapter import DELTA, RESULT, AdapterLayout, ProcessorAdapter
from spark_app.query.processor.handle import declared_variables

EXTRA = "processor"
PACKAGES = {"pyarrow": "pyarrow", "pandas": "pandas", "google.protobuf": "protobuf"}
"""The modules of the extra, with which PySpark runs Python, and the packages that they are in."""
GROUP = (
    f"CASE WHEN {DEAD_LETTER} IS NULL THEN concat(unix_micros({FIRST_SEEN}), '@', {DEVICE_ID})"
    f" ELSE CAST(pmod(xxhash64({DEAD_LETTER}), 64) AS STRING) END"
)
"""The name of a window. Dead letters pass the processor by, in a few groups."""
REFUSED_KEY = "refused_key"
"""The key of a refused record, in hexadecimal: Python reads no text that is not UTF-8."""


def processed(deltas: DataFrame, application: Application, processor: Processor, epoch: int) -> DataFrame:
    """Return the rows of `merged`: the version and state of each window with a new snapshot, and the dead letters.

    `epoch` is the epoch of the dead letters. Raises MissingPackageError, and DeclarationError for a variable of a type
    that Spark does not store as it is.
    """
    require_packages()
    adapter = ProcessorAdapter(processor.of, declared_variables(processor.of), layout(application, epoch))
    windows = deltas.select(F.expr(GROUP).alias("window"), _delta(application).alias(DELTA)).groupBy("window")
    results = windows.transformWithState(adapter, f"{RESULT} STRING", "Update", "ProcessingTime")
    schema = ", ".join(f"{name} {kind}" for name, kind in _result_types(application).items())
    rows = results.select(F.from_json(RESULT, schema, TIMESTAMP_FORMAT).alias(RESULT))
    rows = observe_failures(rows, f"{RESULT}.is_failure")
    return rows.select(*(F.expr(sql).alias(name) for name, sql in _columns(application).items()))


def require_packages() -> None:
    """Raise MissingPackageError unless PySpark can run Python here."""
    for module, package in PACKAGES.items():
        try:
            import_module(module)
        except ImportError as error:
            raise MissingPackageError(package, EXTRA) from error


def layout(application: Application, epoch: int) -> AdapterLayout:
    """Return the application's parts for the adapter."""
    fields = application.event.model_fields
    return AdapterLayout(
        state=application.state,
        fields=application.fields,
        event_fields=tuple(fields),
        times=tuple(name for name, field in fields.items() if without_none(field.annotation)[0] is datetime),
        slots={name: without_none(annotation)[0] for name, annotation in application.slots.items()},
        events=application.topics.events,
        kept_for=application.kept_for + application.skew,
        look_again=application.state.grace,
        largest=application.largest_record,
        epoch=epoch,
    )


def _delta(application: Application) -> Column:
    """Return a delta, or a dead letter, as JSON."""
    event = F.struct(*(F.col(event_column(name)).alias(name) for name in ("ts", *event_fields(application))))
    answers = [F.col(answer_column(enrichment.name)).alias(enrichment.name) for enrichment in application.enrichments]
    own = {
        DEVICE_ID: f"CASE WHEN {DEAD_LETTER} IS NULL THEN {DEVICE_ID} END",
        REFUSED_KEY: f"CASE WHEN {DEAD_LETTER} IS NOT NULL THEN hex({DEVICE_ID}) END",
        "first_seen": f"unix_micros({FIRST_SEEN})",
        DEAD_LETTER: DEAD_LETTER,
        "record_time": f"unix_micros({RECORD_TIME})",
        "topic": RECORD_TOPIC,
        "partition": RECORD_PARTITION,
        "offset": RECORD_OFFSET,
        **({} if application.state.is_windowed else {DEVICE_PARTITION: DEVICE_PARTITION, "event_offset": EVENT_OFFSET}),
        **({FIELD: FIELD} if application.traced else {}),
    }
    columns = [F.expr(sql).alias(name) for name, sql in own.items()]
    structs = [event.alias("event"), *([F.struct(*answers).alias("answers")] if answers else [])]
    return F.to_json(F.struct(*columns, *structs), TIMESTAMP_FORMAT)


def _result_types(application: Application) -> dict[str, str]:
    """Return the SQL types of the adapter's rows, by name."""
    annotations = application.state.model_fields
    kinds = (f"`{name}`: {sql_type(annotations[name].annotation, name, times='STRING')}" for name in application.fields)
    deltas = delta_types(application)
    answers = ", ".join(f"`{name}`: {deltas[answer_column(name)]}" for name in application.slots)
    counts = dict.fromkeys(("first_seen", "version", "as_of", "event_offset"), "BIGINT")
    return (
        counts
        | {DEVICE_ID: "STRING", REFUSED_KEY: "STRING", DEAD_LETTER: "STRING", "is_failure": "BOOLEAN", FIELD: "STRING"}
        | {"device_partition": "INT", "record_partition": "INT", "state": f"STRUCT<{', '.join(kinds)}>"}
        | ({"answers": f"STRUCT<{answers}>"} if answers else {})
    )


def _columns(application: Application) -> dict[str, str]:
    """Return the SQL of the columns of a merged row, over the adapter's rows."""
    placed = {
        "partition": f"coalesce({RESULT}.device_partition, {RESULT}.record_partition)",
        "event_offset": f"{RESULT}.event_offset",
    }
    return (
        {DEVICE_ID: f"coalesce({RESULT}.{DEVICE_ID}, CAST(unhex({RESULT}.{REFUSED_KEY}) AS STRING))"}
        | {DEAD_LETTER: f"{RESULT}.{DEAD_LETTER}", "version": f"{RESULT}.version"}
        | {FIRST_SEEN: f"timestamp_micros({RESULT}.first_seen)", "as_of": f"timestamp_micros({RESULT}.as_of)"}
        | ({} if application.state.is_windowed else placed)
        | {state_column(name): f"{RESULT}.state.`{name}`" for name in application.fields}
        | {answer_column(name): f"{RESULT}.answers.`{name}`" for name in application.slots}
        | ({FIELD: f"{RESULT}.{FIELD}"} if application.traced else {})
    )
