"""The whole job, top to bottom: (events + feedback) → decode → lift → merge → snapshots."""

from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from contracts.application import Application
from spark_app import lift
from spark_app.merge import merged, published
from spark_app.settings import Settings


def pipeline(spark: SparkSession, application: Application, settings: Settings) -> DataStreamWriter:
    """The query, ready to start: one snapshot for each new valid record, a dead letter for each other one."""
    topics = application.topics
    events = read(spark, settings.kafka, topics.events)
    feedback = read(spark, settings.kafka, topics.feedback) if application.enrichments else None
    return write(snapshots(events, feedback, application), settings)


def snapshots(events: DataFrame, feedback: DataFrame | None, application: Application) -> DataFrame:
    """Records of both topics, as Kafka's source gives them, to what the sink writes."""
    deltas = lift.events(events, application)
    if feedback is not None:
        deltas = deltas.unionByName(lift.feedback(feedback, application))
    deltas = deltas.withWatermark("first_seen", interval(application.state.lifetime + application.state.grace))
    if application.deduplicate:
        deltas = deltas.dropDuplicates([*lift.LIFE, "delta_id"])
    return published(merged(deltas, application), application)


def read(spark: SparkSession, kafka: str, topic: str) -> DataFrame:
    """A topic's records, from the first that it keeps. Lost records stop the query: nothing is skipped unseen."""
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka).option("subscribe", topic)
    return source.option("startingOffsets", "earliest").option("failOnDataLoss", "true").load()


def write(rows: DataFrame, settings: Settings) -> DataStreamWriter:
    """The sink: each row goes to the topic that it names."""
    sink = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", settings.kafka)
    query = sink.option("checkpointLocation", settings.checkpoint).queryName("stateloop").outputMode("update")
    return query.trigger(realTime=interval(settings.batch))  # type: ignore[call-overload,no-any-return]  # newer than its stubs


def interval(duration: timedelta) -> str:
    """A duration as Spark spells it."""
    return f"{round(duration.total_seconds() * 1000)} milliseconds"
