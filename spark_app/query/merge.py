"""Merges deltas by the aggregate expressions of the declared state, and encodes the published snapshot."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contracts.model.application import Application
from contracts.model.tracing import FIELD
from contracts.records.record import LARGEST_SNAPSHOT, Reason
from contracts.wire import LARGEST_HEAD, NEVER_WRITTEN
from contracts.wire.partition import partition_sql
from contracts.wire.window_key import SUFFIX_BYTES, window_key_sql
from spark_app.query.columns import DEAD_LETTER, DEVICE_ID, FIRST_SEEN, answer_column, state_column, state_key
from spark_app.query.lift import TIMESTAMP_FORMAT
from spark_app.query.state_model import aggregates, lifted


def merged(deltas: DataFrame, application: Application) -> DataFrame:
    """Return one row for each window: its version, and the columns of its state."""
    columns = [F.expr(sql).alias(name) for name, sql in aggregates(application).items()]
    prepared = {name: F.expr(sql) for name, sql in lifted(application).items()}
    rows = deltas.withColumns(prepared).groupBy(*state_key(application)).agg(*columns)
    return rows if DEAD_LETTER in rows.columns else rows.withColumn(DEAD_LETTER, F.lit(None).cast("string"))


def published(rows: DataFrame, application: Application, epoch: int, partitions: int) -> DataFrame:
    """Return the rows of the sink: topic, key, value and partition of a snapshot, or of a dead letter.

    The key of a snapshot names its window, so that compaction keeps the last of each window. It is in the partition of
    its device's events; for a windowed state, where a producer would put the state's key, as `partitions` is
    their number. A dead letter has the partition of its key.
    """
    topics = application.topics
    snapshot = F.to_json(_snapshot(application, epoch), TIMESTAMP_FORMAT).alias("snapshot")
    dead = F.coalesce(DEAD_LETTER, _too_large(topics.snapshots, epoch)).alias("dead")
    place = F.expr(partition_sql(DEVICE_ID, partitions)) if application.state.is_windowed else F.col("partition")
    own = (DEVICE_ID, FIRST_SEEN)
    written = rows.select(*own, "as_of", DEAD_LETTER, snapshot, place.alias("place")).select(
        *own, dead, "snapshot", "place"
    )
    is_snapshot = F.col("dead").isNull()
    return written.select(
        F.when(is_snapshot, topics.snapshots).otherwise(topics.dead_letters).alias("topic"),
        F.when(is_snapshot, F.expr(window_key_sql(DEVICE_ID, FIRST_SEEN))).otherwise(F.col(DEVICE_ID)).alias("key"),
        F.coalesce("dead", "snapshot").alias("value"),
        F.when(is_snapshot, F.col("place")).alias("partition"),
    )


def dead_letters(deltas: DataFrame, application: Application) -> DataFrame:
    """Return the rows of the sink for the dead letters among these deltas."""
    return deltas.where(f"{DEAD_LETTER} IS NOT NULL").select(
        F.lit(application.topics.dead_letters).alias("topic"),
        F.col(DEVICE_ID).alias("key"),
        F.col(DEAD_LETTER).alias("value"),
        F.lit(None).cast("int").alias("partition"),
    )


def _too_large(topic: str, epoch: int) -> Column:
    """Return the dead letter of a snapshot that no broker would accept: it would fail the query for all devices."""
    size = F.octet_length("snapshot") + F.octet_length(DEVICE_ID) + SUFFIX_BYTES
    content = F.struct(
        F.lit(Reason.LARGE_SNAPSHOT.value).alias("reason"),
        F.concat(size.cast("string"), F.lit(" bytes")).alias("detail"),
        F.lit(topic).alias("topic"),
        F.lit(NEVER_WRITTEN).alias("partition"),
        F.lit(NEVER_WRITTEN).alias("offset"),
        F.col("as_of").alias("timestamp"),
        F.lit(epoch).cast("long").alias("epoch"),
        F.left("snapshot", F.lit(LARGEST_HEAD)).alias("head"),
    )
    return F.when(size > LARGEST_SNAPSHOT, F.to_json(content, TIMESTAMP_FORMAT))


def _snapshot(application: Application, epoch: int) -> Column:
    generation = F.lit(epoch).cast("long").alias("epoch")
    window = [F.col(DEVICE_ID), F.col(FIRST_SEEN), generation]
    offset = [] if application.state.is_windowed else ["event_offset"]
    merged_of = [F.col(name) for name in ("version", "as_of", *offset)]
    state = F.struct(*(F.col(state_column(name)).alias(name) for name in application.fields))
    answers = [F.col(answer_column(name)).alias(name) for name in application.slots]
    enrichments = [F.struct(*answers).alias("enrichments")] if answers else []
    context = [F.col(FIELD)] if application.traced else []
    return F.struct(*window, *merged_of, state.alias("state"), *enrichments, *context)
