"""Merge: the declared state as aggregate expressions, and the snapshot as it is published."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contracts.application import Application
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
    return deltas.groupBy(*LIFE).agg(
        F.count(F.lit(1)).alias("version"), F.max("record_time").alias("as_of"), *state, *answers
    )


def published(rows: DataFrame, application: Application) -> DataFrame:
    """What the sink writes: topic, key and value of a snapshot, or of a dead letter."""
    topics = application.topics
    return rows.select(
        F.when(F.col("dead_letter").isNull(), topics.snapshots).otherwise(topics.dead_letters).alias("topic"),
        F.col("device_id").alias("key"),
        F.coalesce("dead_letter", F.to_json(_snapshot(application), TIMESTAMP_FORMAT)).alias("value"),
    )


def _snapshot(application: Application) -> Column:
    fields = [F.col(name) for name in ("device_id", "first_seen", "version", "as_of")]
    state = F.struct(*(F.col(f"state_{name}").alias(name) for name in application.sources))
    answers = [F.col(f"answer_{name}").alias(name) for name in application.slots]
    enrichments = [F.struct(*answers).alias("enrichments")] if answers else []
    return F.struct(*fields, state.alias("state"), *enrichments)


def _column(source: str) -> str:
    return "ts" if source == "ts" else f"event_{source}"
