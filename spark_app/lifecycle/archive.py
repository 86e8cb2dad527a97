"""Archives the snapshots of an application as Parquet: `stateloop archive`.

A run reads the topic of snapshots from the end of the last run to the current end offsets. Spark's file sink logs
the files of each batch in `_spark_metadata`, so a batch that was killed and repeated counts once. The checkpoint of the
query is in the folder of the archive: with another one, the sink would take new batches for those that it has.

Each snapshot is a row, since a file cannot be changed: the newest one of a window has the greatest epoch and
version, as everywhere. See decision 0033.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from contracts.model.application import Application
from contracts.types.columns import sql_type, text
from contracts.wire.messages import FORMAT
from spark_app.checkpoint.commit_log import committed_positions
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.keeper import kept
from spark_app.checkpoint.lease import CheckpointLease, acquire
from spark_app.checkpoint.owner import this_job
from spark_app.errors import CheckpointInUseError
from spark_app.lifecycle.errors import ArchiveInUseError, ArchiveReplacedError, SnapshotsDeletedError
from spark_app.query.columns import answer_type
from spark_app.query.kafka import CONSUMER, connector
from spark_app.run.session import stop_queries
from spark_app.settings import JobSettings
from spark_app.topics.identity import TopicIdentity, identify_topic
from spark_app.topics.offsets import offset_ranges

CHECKPOINT = "_checkpoint"
"""The folder of the query's checkpoint in the archive's. Readers of Parquet skip names that begin with `_`."""
TOPIC = "stateloop.topic"
"""The file in it with the id of the topic."""
DATE = "date"
"""The column by which files are partitioned: the date of the window's start, in UTC."""
OBSERVATION = "archive"
BATCH = 500_000
"""The number of records in a batch, after which there is progress to keep."""
CONF = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # the default is a type that Parquet has deprecated
    "spark.sql.streaming.numRecentProgressUpdates": "1000000",  # of which the run's counts are the sum
}


@dataclass(frozen=True)
class Archived:
    """The result of a run of the archive."""

    snapshots: int
    undecodable: int
    """The number of records that are no snapshots of the declared state, and are not in the archive."""


def archive(  # noqa: PLR0913  # two of them are options of the command
    spark: SparkSession,
    application: Application,
    settings: JobSettings,
    folder: str,
    *,
    batch: int = BATCH,
    skips_deleted: bool = False,
) -> Archived:
    """Archive all that the topic has and the folder lacks, in batches of `batch` records.

    If the topic has deleted records that were not archived, the run fails, or skips them. Raises ArchiveReplacedError,
    ArchiveInUseError, SnapshotsDeletedError, LeaseLostError, as `identify_topic`, and what Spark raises.
    """
    own = spark.newSession()
    for name, value in CONF.items():
        own.conf.set(name, value)
    topic = identify_topic(settings, application, application.topics.snapshots)
    checkpoint = CheckpointFolder(own, f"{folder}/{CHECKPOINT}")
    lease = _lease(own, checkpoint, folder)
    with kept(lease, lambda: stop_queries(own)) as require_lease:
        if not checkpoint.has(TOPIC):
            checkpoint.write_new(TOPIC, topic.id)
        elif checkpoint.read(TOPIC) != topic.id:
            raise ArchiveReplacedError(folder, topic.name)
        if not skips_deleted and (deleted := _deleted(settings, topic, checkpoint)):
            raise SnapshotsDeletedError(topic.name, deleted)
        source = own.readStream.format("kafka").options(**connector(settings.client()), **CONSUMER)
        source = source.option("failOnDataLoss", str(not skips_deleted)).option("maxOffsetsPerTrigger", str(batch))
        records = source.option("subscribe", topic.name).option("startingOffsets", "earliest").load()
        sink = rows(records, application).writeStream.format("parquet").partitionBy(DATE).option("compression", "zstd")
        query = sink.option("checkpointLocation", checkpoint.path).trigger(availableNow=True).start(folder)
        query.awaitTermination()
        require_lease()  # or the loss of it has stopped the query before its end
    return _counts(query)


def _deleted(settings: JobSettings, topic: TopicIdentity, checkpoint: CheckpointFolder) -> dict[int, int]:
    """Return how many records that were not archived each partition has deleted. Spark's own error names no option."""
    read = committed_positions(checkpoint) or {}
    begins = {number: begin for (_, number), (begin, _) in offset_ranges(settings, [topic]).items()}
    counts = {number: begin - read.get((topic.name, number), begin) for number, begin in begins.items()}
    return {number: count for number, count in counts.items() if count > 0}


def rows(records: DataFrame, application: Application) -> DataFrame:
    """Return a row of typed columns for each snapshot among Kafka's records. Tombstones are none."""
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "malformed"}
    settings = ", ".join(text(item) for pair in options.items() for item in pair)
    parsed = f"from_json(CAST(value AS STRING), {text(_schema(application))}, map({settings}))"
    parsed_records = records.where("value IS NOT NULL").withColumn("snapshot", F.expr(parsed))
    required = " AND ".join(
        f"snapshot.{name} IS NOT NULL" for name in ("device_id", "first_seen", "version", "as_of", "state")
    )
    parsed_records = parsed_records.withColumn(
        "is_decodable",
        F.expr(f"{required} AND snapshot.malformed IS NULL AND coalesce(snapshot.format, {FORMAT}) <= {FORMAT}"),
    )
    counts = {"snapshots": "count_if(is_decodable)", "undecodable": "count_if(NOT is_decodable)"}
    parsed_records = parsed_records.observe(OBSERVATION, *(F.expr(sql).alias(name) for name, sql in counts.items()))
    enrichments = ["snapshot.enrichments"] if application.slots else []
    return parsed_records.where("is_decodable").select(
        F.col("snapshot.device_id").alias("key"),
        F.col("snapshot.first_seen").alias("window_start"),
        F.expr("coalesce(snapshot.epoch, 0L)").alias("epoch"),
        "snapshot.version",
        "snapshot.as_of",
        "snapshot.state",
        *enrichments,
        "partition",
        "offset",
        F.to_date("snapshot.first_seen").alias(DATE),
    )


def _schema(application: Application) -> str:
    """Return the SQL type of a snapshot, and of the text of one that is not of this type."""
    fields = application.state.model_fields
    state = _struct({name: sql_type(fields[name].annotation, name) for name in application.fields})
    answers = _struct({name: answer_type(application, name) for name in application.slots})
    types = {
        "device_id": "STRING",
        "first_seen": "TIMESTAMP",
        "epoch": "BIGINT",
        "version": "BIGINT",
        "as_of": "TIMESTAMP",
        "state": state,
        **({"enrichments": answers} if application.slots else {}),
        "format": "INT",
        "malformed": "STRING",
    }
    return ", ".join(f"{name} {kind}" for name, kind in types.items())


def _struct(types: dict[str, str]) -> str:
    return f"STRUCT<{', '.join(f'`{name}`: {kind}' for name, kind in types.items())}>"


def _lease(spark: SparkSession, checkpoint: CheckpointFolder, folder: str) -> CheckpointLease:
    try:
        return acquire(checkpoint, this_job(spark))
    except CheckpointInUseError as error:
        raise ArchiveInUseError(folder, error.owner) from error


def _counts(query: StreamingQuery) -> Archived:
    observed = [progress.observedMetrics.get(OBSERVATION) for progress in query.recentProgress]
    batches = [metrics for metrics in observed if metrics is not None]
    return Archived(
        sum(metrics["snapshots"] for metrics in batches), sum(metrics["undecodable"] for metrics in batches)
    )
