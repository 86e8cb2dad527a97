"""The whole job, top to bottom: (events + feedback) → decode → lift → merge → snapshots."""

from collections.abc import Sequence
from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from contracts.model.application import Application
from contracts.model.emit import Emit
from spark_app.query import lift
from spark_app.query.columns import DEAD_LETTER, DEDUPLICATION, DEVICE_ID, FIRST_SEEN, WINDOW
from spark_app.query.kafka import CONSUMER, PRODUCER, connector
from spark_app.query.merge import dead_letters, merged, published
from spark_app.query.observations import observe_dead_letters
from spark_app.query.processor.step import processed
from spark_app.settings import JobSettings

WITHOUT_HEARTBEATS = (
    f"{DEVICE_ID} IS NOT NULL OR {DEAD_LETTER} IS NOT NULL OR {FIRST_SEEN} < TIMESTAMP'0001-01-01 00:00:00Z'"
)
"""Heartbeats move the watermark, and must not enter a state. The last condition is true for no row: Spark evaluates a
filter that does not read the watermark's column before the watermark, where it would remove them too soon."""
ADDED_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
"""The setting for batches without records, which Spark adds when the watermark has moved."""
Unpublished = Sequence[tuple[int, int]]
"""The windows that a job does not publish: for each range the time after which they begin, and the one until which."""
BUILD_RECORDS = 500_000
"""The number of records in a batch of a build, of each topic: after it there is progress to report, and to keep."""


def pipeline(  # noqa: PLR0913, PLR0917  # what a run of the query depends on
    spark: SparkSession,
    application: Application,
    settings: JobSettings,
    epoch: int,
    partitions: int,
    heartbeats: bytes,
    unpublished: Unpublished = (),
    fence: str = "true",
) -> DataStreamWriter:
    """The query, ready to start: snapshots of the states that its records change, a dead letter for each bad record.

    `epoch` is the creation time of the checkpoint, in milliseconds; each topic has `partitions` partitions. Heartbeats
    whose key begins with `heartbeats` move the watermark. No window is published that begins in a range of
    `unpublished`. `fence` is the SQL of whether a row may be published now.
    """
    topics = application.topics
    kafka = connector(settings.client())
    events = read(spark, kafka, topics.events)
    feedback = read(spark, kafka, topics.feedback) if application.enrichments else None
    rows = snapshots(events, feedback, application, epoch, partitions, heartbeats, unpublished)
    return write(observe_dead_letters(rows.where(fence), topics.dead_letters), application, kafka, settings)


def build(  # noqa: PLR0913, PLR0917  # as `pipeline`, and since when
    spark: SparkSession, application: Application, settings: JobSettings, epoch: int, since_ms: int, partitions: int
) -> DataStreamWriter:
    """The query that builds a state and publishes nothing, from the records since a time to the end offsets.

    No window expires, since partitions are read at different speeds. The job that continues from it has
    `partitions` partitions in each topic; there may be fewer now.
    """
    topics, kafka = application.topics, connector(settings.client())
    limits = {"startingTimestamp": str(since_ms), "startingOffsetsByTimestampStrategy": "latest"}
    limits |= {"maxOffsetsPerTrigger": str(BUILD_RECORDS)}
    events = read(spark, kafka | limits, topics.events)
    feedback = read(spark, kafka | limits, topics.feedback) if application.enrichments else None
    delta_rows = deltas(events, feedback, application, epoch, partitions)
    rows = scanned(states(delta_rows, application, epoch, expires=False), delta_rows, application)
    sink = rows.writeStream.format("noop").option("checkpointLocation", settings.checkpoint).outputMode("update")
    return sink.trigger(availableNow=True)


def snapshots(  # noqa: PLR0913, PLR0917  # as `pipeline`
    events: DataFrame,
    feedback: DataFrame | None,
    application: Application,
    epoch: int,
    partitions: int,
    heartbeats: bytes = lift.NO_HEARTBEATS,
    unpublished: Unpublished = (),
) -> DataFrame:
    """Transform records of both topics, as Kafka's source returns them, to the rows of the sink."""
    delta_rows = deltas(events, feedback, application, epoch, partitions, heartbeats)
    rows = published(states(delta_rows, application, epoch, unpublished=unpublished), application, epoch, partitions)
    if application.emit is Emit.CLOSE:  # snapshots wait for the end of their window, and dead letters do not
        rows = rows.unionByName(dead_letters(delta_rows, application))
    return rows


def deltas(  # noqa: PLR0913, PLR0917  # as `pipeline`
    events: DataFrame,
    feedback: DataFrame | None,
    application: Application,
    epoch: int,
    partitions: int,
    heartbeats: bytes = lift.NO_HEARTBEATS,
) -> DataFrame:
    """Transform records of both topics to deltas and dead letters."""
    event_deltas = lift.events(events, application, epoch, partitions, heartbeats)
    if feedback is None:
        return event_deltas
    return event_deltas.unionByName(lift.feedback(feedback, application, epoch, partitions, heartbeats))


def states(
    delta_rows: DataFrame,
    application: Application,
    epoch: int,
    *,
    expires: bool = True,
    unpublished: Unpublished = (),
) -> DataFrame:
    """Deltas to a row for each window that is not unpublished, and for each dead letter that passes through the state.

    `epoch` is the epoch of the dead letters. A state that `expires` has no window that is over by its heartbeats; in a
    replay, which has none, by its records.
    """
    if application.emit is Emit.CLOSE:
        delta_rows = delta_rows.where(f"{DEAD_LETTER} IS NULL")
    # A credible clock may be ahead by the skew, and must not expire a window sooner.
    kept_for = application.kept_for + application.skew
    moves_by_records = application.topics.replay and expires
    delta_rows = delta_rows.withWatermark(FIRST_SEEN, interval(kept_for if moves_by_records else kept_for + lift.LEAD))
    delta_rows = delta_rows.where(WITHOUT_HEARTBEATS)
    if application.deduplicate:
        delta_rows = delta_rows.dropDuplicates(DEDUPLICATION)
    rows = (
        merged(delta_rows, application)
        if application.processor is None
        else processed(delta_rows, application, application.processor, epoch)
    )
    return rows.where(published_sql(unpublished)) if unpublished else rows


def published_sql(unpublished: Unpublished) -> str:
    """Return the SQL of whether a row of the state is published: a dead letter, or a window outside of the ranges.

    The last condition is true for no row. A filter of grouping columns alone would be evaluated before the aggregate,
    where it would not find the windows that a state has already.
    """
    start = f"unix_micros({FIRST_SEEN})"
    ranges = (f"{start} > {after * 1000}L AND {start} <= {until * 1000}L" for after, until in unpublished)
    return f"{DEAD_LETTER} IS NOT NULL OR NOT ({' OR '.join(ranges)}) OR version < 0"


def scanned(rows: DataFrame, delta_rows: DataFrame, application: Application) -> DataFrame:
    """Read the sources as often as the job's query does: Spark compares their number with the checkpoint's."""
    if scans(application) == 1:
        return rows
    letters = delta_rows.where(f"{DEAD_LETTER} IS NOT NULL").select(*WINDOW, DEAD_LETTER)
    return rows.unionByName(letters, allowMissingColumns=True)


def scans(application: Application) -> int:
    """Return how often the query reads each record: with `Emit.CLOSE` once more, for the dead letters."""
    return 2 if application.emit is Emit.CLOSE else 1


def read(spark: SparkSession, kafka: dict[str, str], topic: str) -> DataFrame:
    """Read a topic's records from its first offset. Lost records stop the query: none is skipped silently."""
    source = spark.readStream.format("kafka").options(**kafka, **CONSUMER).option("subscribe", topic)
    return source.option("startingOffsets", "earliest").option("failOnDataLoss", "true").load()


def write(rows: DataFrame, application: Application, kafka: dict[str, str], settings: JobSettings) -> DataStreamWriter:
    """The sink: each row goes to the topic that it names."""
    sink = rows.writeStream.format("kafka").options(**kafka, **PRODUCER).queryName(application.name)
    mode = "append" if application.emit is Emit.CLOSE else "update"
    return sink.option("checkpointLocation", settings.checkpoint).outputMode(mode)


def live(query: DataStreamWriter, emit: Emit, batch: timedelta) -> StreamingQuery:
    """Start the query, in real-time mode if each record gives a snapshot at once, or else in micro-batches."""
    if emit is Emit.EVENT:
        return query.trigger(realTime=interval(batch)).start()  # type: ignore[call-overload,no-any-return]  # newer than its stubs
    return query.trigger(processingTime=interval(batch)).start()


def catching_up(query: DataStreamWriter, application: Application) -> StreamingQuery:
    """Start the query in one micro-batch, from the checkpoint to the current end offsets; then it stops."""
    if application.processor is not None:  # the other trigger runs batches until no operator has timers: for ever
        return query.trigger(once=True).start()
    return query.trigger(availableNow=True).start()


def republishing(spark: SparkSession, query: DataStreamWriter) -> StreamingQuery:
    """Start the query of a session as `catching_up`; it publishes each window of the state, changed or not.

    It runs one batch: another one, which Spark adds when the watermark moves, would publish each window once more.
    """
    spark.conf.set(ADDED_BATCHES, "false")
    try:
        started = query.outputMode("complete").trigger(availableNow=True).start()
    finally:  # of the runs that follow
        spark.conf.unset(ADDED_BATCHES)
        query.outputMode("update")
    return started


def interval(duration: timedelta) -> str:
    """Return a duration in Spark's format."""
    return f"{round(duration.total_seconds() * 1000)} milliseconds"
