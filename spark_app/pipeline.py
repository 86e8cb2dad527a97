"""The whole job, top to bottom: (events + feedback) → decode → lift → merge → snapshots."""

from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from contracts.model.application import Application
from spark_app import lift
from spark_app.columns import DEDUPLICATION, FIRST_SEEN
from spark_app.kafka import CONSUMER, PRODUCER, connector
from spark_app.merge import merged, published
from spark_app.settings import JobSettings


def pipeline(
    spark: SparkSession, application: Application, settings: JobSettings, epoch: int, partitions: int
) -> DataStreamWriter:
    """The query, ready to start: one snapshot for each new valid record, a dead letter for each other one.

    `epoch` is the creation time of the checkpoint, in milliseconds; each topic has so many `partitions`.
    """
    topics = application.topics
    kafka = connector(settings.client())
    events = read(spark, kafka, topics.events)
    feedback = read(spark, kafka, topics.feedback) if application.enrichments else None
    return write(snapshots(events, feedback, application, epoch, partitions), kafka, settings)


def snapshots(
    events: DataFrame, feedback: DataFrame | None, application: Application, epoch: int, partitions: int
) -> DataFrame:
    """Records of both topics, as Kafka's source gives them, to what the sink writes."""
    deltas = lift.events(events, application, epoch)
    if feedback is not None:
        deltas = deltas.unionByName(lift.feedback(feedback, application, epoch))
    # A credible clock may be ahead by the skew, and must not expire a window sooner.
    kept_for = application.kept_for
    deltas = deltas.withWatermark(FIRST_SEEN, interval(kept_for + application.skew))
    if application.deduplicate:
        deltas = deltas.dropDuplicates(DEDUPLICATION)
    return published(merged(deltas, application), application, epoch, partitions)


def read(spark: SparkSession, kafka: dict[str, str], topic: str) -> DataFrame:
    """A topic's records, from the first that it keeps. Lost records stop the query: nothing is skipped unseen."""
    source = spark.readStream.format("kafka").options(**kafka, **CONSUMER).option("subscribe", topic)
    return source.option("startingOffsets", "earliest").option("failOnDataLoss", "true").load()


def write(rows: DataFrame, kafka: dict[str, str], settings: JobSettings) -> DataStreamWriter:
    """The sink: each row goes to the topic that it names."""
    sink = rows.writeStream.format("kafka").options(**kafka, **PRODUCER)
    return sink.option("checkpointLocation", settings.checkpoint).queryName("stateloop").outputMode("update")


def live(query: DataStreamWriter, batch: timedelta) -> StreamingQuery:
    """Start the query in real-time mode: each record gives a snapshot at once."""
    return query.trigger(realTime=interval(batch)).start()  # type: ignore[call-overload,no-any-return]  # newer than its stubs


def catching_up(query: DataStreamWriter) -> StreamingQuery:
    """Start the query in one micro-batch, from the checkpoint to the ends that the topics have now; then it ends."""
    return query.trigger(availableNow=True).start()


def interval(duration: timedelta) -> str:
    """A duration as Spark spells it."""
    return f"{round(duration.total_seconds() * 1000)} milliseconds"
