"""Merge: the declared state as aggregate expressions, and the snapshot as it is published."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contracts.application import Application
from contracts.record import LARGEST_HEAD, LARGEST_SNAPSHOT, Reason
from contracts.tracing import FIELD
from contracts.wire import NEVER_WRITTEN
from spark_app.lift import LIFE, TIMESTAMP_FORMAT


def merged(deltas: DataFrame, application: Application) -> DataFrame:
    """One row for each life: its version, and each field of its state under the field's name."""
    state = [
        F.expr(application.reducers[name].sql(_column(source))).alias(f"state_{name}")
        for name, source in application.sources.items()
    ]
    answers = [
        F.expr(application.reducers[name].sql(f"answer_{name}")).alias(f"answer_{name}") for name in application.slots
    ]
    # Nulls are the least: an untraced record that came last is no part of the trace of those before it.
    context = [F.expr(f"max(struct(record_time, {FIELD})).{FIELD}").alias(FIELD)] if application.traced else []
    return deltas.groupBy(*LIFE).agg(
        F.count(F.lit(1)).alias("version"), F.max("record_time").alias("as_of"), *state, *answers, *context
    )


def published(rows: DataFrame, application: Application) -> DataFrame:
    """What the sink writes: topic, key and value of a snapshot, or of a dead letter."""
    topics = application.topics
    snapshot = F.to_json(_snapshot(application), TIMESTAMP_FORMAT).alias("snapshot")
    letter = F.coalesce("dead_letter", _too_large(topics.snapshots)).alias("letter")
    written = rows.select("device_id", "as_of", "dead_letter", snapshot).select("device_id", letter, "snapshot")
    return written.select(
        F.when(F.col("letter").isNull(), topics.snapshots).otherwise(topics.dead_letters).alias("topic"),
        F.col("device_id").alias("key"),
        F.coalesce("letter", "snapshot").alias("value"),
    )


def _too_large(topic: str) -> Column:
    """The letter of a snapshot that no broker would take: without it, one device's state would fail the query."""
    size = F.octet_length("snapshot") + F.octet_length("device_id")
    letter = F.struct(
        F.lit(Reason.LARGE_SNAPSHOT.value).alias("reason"),
        F.concat(size.cast("string"), F.lit(" bytes")).alias("detail"),
        F.lit(topic).alias("topic"),
        F.lit(NEVER_WRITTEN).alias("partition"),
        F.lit(NEVER_WRITTEN).alias("offset"),
        F.col("as_of").alias("timestamp"),
        F.left("snapshot", F.lit(LARGEST_HEAD)).alias("head"),
    )
    return F.when(size > LARGEST_SNAPSHOT, F.to_json(letter, TIMESTAMP_FORMAT))


def _snapshot(application: Application) -> Column:
    fields = [F.col(name) for name in ("device_id", "first_seen", "version", "as_of")]
    state = F.struct(*(F.col(f"state_{name}").alias(name) for name in application.sources))
    answers = [F.col(f"answer_{name}").alias(name) for name in application.slots]
    enrichments = [F.struct(*answers).alias("enrichments")] if answers else []
    context = [F.col(FIELD)] if application.traced else []
    return F.struct(*fields, state.alias("state"), *enrichments, *context)


def _column(source: str) -> str:
    return "ts" if source == "ts" else f"event_{source}"
