"""Exports the state of a checkpoint as rows of the declared model, without the query service.

Spark repeats the last committed batch of a copy in complete mode, and so gives every row of the state to the sink. The
values are those that the job publishes, also of reducers whose buffers only Spark can read. The records of
that one batch must still be in the topics.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from contracts.model.application import Application
from spark_app.checkpoint.commit_files import forget_commit
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.unpublished_windows import stored_windows
from spark_app.lifecycle.errors import NotMergedError
from spark_app.lifecycle.savepoint import Savepoint, create
from spark_app.query.columns import DEAD_LETTER, DEVICE_ID, FIRST_SEEN, answer_column, state_column
from spark_app.query.kafka import connector
from spark_app.query.pipeline import deltas, read, scanned, states
from spark_app.settings import JobSettings

Format = Literal["parquet", "json"]
ONE_BATCH = "1 day"
"""The trigger's interval: the first batch runs at once, and the query is stopped after it."""
LOOK_S = 1


def export(
    spark: SparkSession,
    application: Application,
    settings: JobSettings,
    scratch: Path,
    write: Callable[[DataFrame, Savepoint], object],
) -> Savepoint:
    """Give the state after the last commit of the checkpoint to `write`, once: a row for each window or dead letter.

    Returns what was copied to `scratch`. Raises NotMergedError, EmptyCheckpointError, and what Spark raises.
    """
    if application.processor is not None:
        raise NotMergedError(application.name, "an export", "read its snapshots, or use the query service")
    copy = CheckpointFolder(spark, str(scratch))
    made = create(CheckpointFolder(spark, settings.checkpoint), copy, application.name)
    forget_commit(copy, made.batch)

    written = threading.Event()

    def each(rows: DataFrame, batch: int) -> None:
        if batch == made.batch:
            write(rows, made)
            written.set()

    topics, kafka = application.topics, connector(settings.client())
    events = read(spark, kafka, topics.events)
    feedback = read(spark, kafka, topics.feedback) if application.enrichments else None
    # With each column, or Spark would expect another state.
    delta_rows = deltas(events, feedback, application, made.epoch, made.identity.partitions)
    state = states(delta_rows, application, made.epoch, unpublished=stored_windows(copy).ranges)
    rows = scanned(state, delta_rows, application)
    sink = rows.writeStream.foreachBatch(each).option("checkpointLocation", copy.path).outputMode("complete")
    query = sink.trigger(processingTime=ONE_BATCH).start()
    try:
        while not written.is_set():
            query.awaitTermination(LOOK_S)
    finally:
        query.stop()
    return made


def declared(rows: DataFrame, application: Application) -> DataFrame:
    """Return the rows of windows with the names of the state's declaration."""
    windows = rows.where(f"{DEVICE_ID} IS NOT NULL AND {DEAD_LETTER} IS NULL")
    own = [F.col(DEVICE_ID).alias("key"), F.col(FIRST_SEEN).alias("window_start"), F.col("version"), F.col("as_of")]
    fields = [F.col(state_column(name)).alias(name) for name in application.fields]
    answers = [F.col(answer_column(name)).alias(name) for name in application.slots]
    enrichments = [F.struct(*answers).alias("enrichments")] if answers else []
    return windows.select(*own, F.struct(*fields).alias("state"), *enrichments)


def write_files(rows: DataFrame, path: str, kind: Format) -> None:
    """Write rows as files of a new folder of any file system of Spark."""
    rows.write.format(kind).save(path)
