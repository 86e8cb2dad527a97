"""Merge: the declared state as aggregate expressions, and the snapshot as it is published."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contracts.model.application import Application
from contracts.model.tracing import FIELD
from contracts.records.record import LARGEST_HEAD, LARGEST_SNAPSHOT, Reason
from contracts.wire import NEVER_WRITTEN
from contracts.wire.window_key import SUFFIX_BYTES, window_key_sql
from spark_app.lift import LIFE, TIMESTAMP_FORMAT
from spark_app.state_model import aggregates


def merged(deltas: DataFrame, application: Application) -> DataFrame:
    """One row for each life: its version, and each field of its state under the field's name."""
    columns = [F.expr(sql).alias(name) for name, sql in aggregates(application).items()]
    return deltas.groupBy(*LIFE).agg(*columns)


def published(rows: DataFrame, application: Application, epoch: int) -> DataFrame:
    """What the sink writes: topic, key, value and partition of a snapshot, or of a dead letter.

    The key of a snapshot names its window, so that compaction keeps the last of each window. A dead letter has the
    partition that its key says.
    """
    topics = application.topics
    snapshot = F.to_json(_snapshot(application, epoch), TIMESTAMP_FORMAT).alias("snapshot")
    letter = F.coalesce("dead_letter", _too_large(topics.snapshots, epoch)).alias("letter")
    rows = rows.where("device_id IS NOT NULL OR dead_letter IS NOT NULL")  # the others are heartbeats
    own = ("device_id", "first_seen", "partition")
    written = rows.select(*own, "as_of", "dead_letter", snapshot).select(*own, letter, "snapshot")
    is_snapshot = F.col("letter").isNull()
    return written.select(
        F.when(is_snapshot, topics.snapshots).otherwise(topics.dead_letters).alias("topic"),
        F.when(is_snapshot, F.expr(window_key_sql("device_id", "first_seen")))
        .otherwise(F.col("device_id"))
        .alias("key"),
        F.coalesce("letter", "snapshot").alias("value"),
        F.when(is_snapshot, F.col("partition")).alias("partition"),
    )


def _too_large(topic: str, epoch: int) -> Column:
    """The letter of a snapshot that no broker would take: without it, one device's state would fail the query."""
    size = F.octet_length("snapshot") + F.octet_length("device_id") + SUFFIX_BYTES
    letter = F.struct(
        F.lit(Reason.LARGE_SNAPSHOT.value).alias("reason"),
        F.concat(size.cast("string"), F.lit(" bytes")).alias("detail"),
        F.lit(topic).alias("topic"),
        F.lit(NEVER_WRITTEN).alias("partition"),
        F.lit(NEVER_WRITTEN).alias("offset"),
        F.col("as_of").alias("timestamp"),
        F.lit(epoch).cast("long").alias("epoch"),
        F.left("snapshot", F.lit(LARGEST_HEAD)).alias("head"),
    )
    return F.when(size > LARGEST_SNAPSHOT, F.to_json(letter, TIMESTAMP_FORMAT))


def _snapshot(application: Application, epoch: int) -> Column:
    generation = F.lit(epoch).cast("long").alias("epoch")
    window = [F.col("device_id"), F.col("first_seen"), generation]
    merged_of = [F.col(name) for name in ("version", "as_of", "event_offset")]
    state = F.struct(*(F.col(f"state_{name}").alias(name) for name in application.sources))
    answers = [F.col(f"answer_{name}").alias(name) for name in application.slots]
    enrichments = [F.struct(*answers).alias("enrichments")] if answers else []
    context = [F.col(FIELD)] if application.traced else []
    return F.struct(*window, *merged_of, state.alias("state"), *enrichments, *context)
