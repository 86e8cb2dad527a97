"""The whole job, top to bottom: (events + feedback) → decode → lift → merge → snapshots."""

from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from contracts.application import Application
from spark_app import lift
from spark_app.kafka import PRODUCER, connector
from spark_app.merge import merged, published
from spark_app.settings import Settings


def pipeline(spark: SparkSession, application: Application, settings: Settings) -> DataStreamWriter:
    """The query, ready to start: one snapshot for each new valid record, a dead letter for each other one."""
    topics = application.topics
    kafka = connector(settings.client())
    events = read(spark, kafka, topics.events)
    feedback = read(spark, kafka, topics.feedback) if application.enrichments else None
    return write(snapshots(events, feedback, application), kafka, settings)


def snapshots(events: DataFrame, feedback: DataFrame | None, application: Application) -> DataFrame:
    """Records of both topics, as Kafka's source gives them, to what the sink writes."""
    deltas = lift.events(events, application)
    if feedback is not None:
        deltas = deltas.unionByName(lift.feedback(feedback, application))
    # A credible clock may be ahead by the skew, and may end nobody's life sooner.
    life = application.kept_for
    deltas = deltas.withWatermark("first_seen", interval(life + application.skew))
    if application.deduplicate:
        deltas = deltas.dropDuplicates(lift.ONCE)
    return published(merged(deltas, application), application)


def read(spark: SparkSession, kafka: dict[str, str], topic: str) -> DataFrame:
    """A topic's records, from the first that it keeps. Lost records stop the query: nothing is skipped unseen."""
    source = spark.readStream.format("kafka").options(**kafka).option("subscribe", topic)
    return source.option("startingOffsets", "earliest").option("failOnDataLoss", "true").load()


def write(rows: DataFrame, kafka: dict[str, str], settings: Settings) -> DataStreamWriter:
    """The sink: each row goes to the topic that it names."""
    sink = rows.writeStream.format("kafka").options(**kafka, **PRODUCER)
    query = sink.option("checkpointLocation", settings.checkpoint).queryName("stateloop").outputMode("update")
    return query.trigger(realTime=interval(settings.batch))  # type: ignore[call-overload,no-any-return]  # newer than its stubs


def interval(duration: timedelta) -> str:
    """A duration as Spark spells it."""
    return f"{round(duration.total_seconds() * 1000)} milliseconds"
