"""The Spark session: every setting that the job depends on, with its reason, and how many slots it needs."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from contracts.model.application import Application
from contracts.types.columns import SQL_SETTINGS
from spark_app.settings import JobSettings
from spark_app.topics.identity import sources

STATE_STORE = "spark.sql.streaming.stateStore"
CONF: dict[str, bool | float | int | str | None] = {
    **SQL_SETTINGS,
    # A single key's state is small and there are millions: they belong on disk, with changes logged, not copied.
    f"{STATE_STORE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{STATE_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    # Real-time mode needs it, and goes on where a micro-batch that caught up has ended.
    f"{STATE_STORE}.checkpointFormatVersion": "2",
    # A job that is killed in its first batch leaves files of state that no commit names. In this format of checkpoints
    # they are never read, and Spark would refuse to start again because of them.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    # Counting rows costs a read for each write.
    f"{STATE_STORE}.rocksdb.trackTotalNumberOfRows": "false",
    # Expiry is spread over the batch instead of making its end longer.
    "spark.sql.streaming.statefulOperator.incrementalCleanupFactor": "2",
    # Most of the median latency, at its default of 50.
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1",
    # Nothing but the job's queries runs here.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

SILENCED = (
    # It warns whenever a processor reads a state variable without a value.
    "org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkStateServer",
    # It warns of each batch that took longer than its interval: the report of the batch has its time.
    "org.apache.spark.sql.execution.streaming.runtime.ProcessingTimeExecutor",
)
"""The loggers of Spark whose only warning needs no action."""
MAINTENANCE = timedelta(minutes=1)
"""Spark's default interval for uploads of the state's snapshots."""
LOCAL_FILES: dict[str, bool | float | int | str | None] = {
    # Without Hadoop's native library, the default one runs the command readlink some sixty times for each batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""The options for a checkpoint on a local file system, where every kind of rename is atomic."""


def slots(application: Application, partitions: int, state_partitions: int) -> int:
    """Return how many tasks run at once: one for each partition of each source, and of each stateful operator."""
    stateful = 2 if application.deduplicate else 1
    return len(sources(application)) * partitions + stateful * state_partitions


def session(settings: JobSettings, slots: int) -> SparkSession:
    """Return the session. Under spark-submit the submitter sets the master, the jars and the memory."""
    builder = SparkSession.Builder().appName("stateloop").config(map=CONF)
    if urlsplit(settings.checkpoint).scheme in ("", "file"):
        builder = builder.config(map=LOCAL_FILES)
    if not _submitted():
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # PySpark starts the python3 of the path otherwise
        jars = sorted(str(jar) for jar in (settings.jars / "spark").resolve().glob("*.jar"))
        builder = (
            builder.master(f"local[{slots}]")
            .config("spark.jars", ",".join(jars))
            .config("spark.driver.extraClassPath", ":".join(jars))
            .config("spark.driver.memory", settings.driver_memory)
            .config("spark.driver.extraJavaOptions", java_options(settings.java_options, archive_of(settings)))
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.executorEnv.PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(settings.log_level)
    silence(spark)
    return spark


@contextmanager
def open_session(settings: JobSettings, slots: int) -> Iterator[SparkSession]:
    """Yield the session, and stop Spark at the end."""
    spark = session(settings, slots)
    try:
        yield spark
    finally:
        stop(spark, settings.class_archive)


def silence(spark: SparkSession) -> None:
    """Turn off the warnings of the loggers in `SILENCED`."""
    context: Any = spark.sparkContext
    log4j = context._jvm.org.apache.logging.log4j  # noqa: SLF001  # PySpark has no public way
    for logger in SILENCED:
        log4j.core.config.Configurator.setLevel(logger, log4j.Level.ERROR)


def query_session(spark: SparkSession, batch: timedelta, state_partitions: int) -> SparkSession:
    """Return a session with the settings of one query, on the same executors. It stops only its own query."""
    own = spark.newSession()
    own.conf.set("spark.sql.shuffle.partitions", state_partitions)
    own.conf.set(f"{STATE_STORE}.minDeltasForSnapshot", batches_per_snapshot(batch))
    return own


def stop_queries(spark: SparkSession) -> bool:
    """Stop the running queries of a session. Return whether there were any."""
    any_active = False
    with suppress(Py4JError, PySparkException):  # the JVM is gone, or the query ended meanwhile
        for query in spark.streams.active:
            any_active = True
            query.stop()
    return any_active


def stop(spark: SparkSession, archive: Path | None) -> None:
    """Stop Spark. Where its JVM has yet to write the archive of classes, return when it has ended.

    It would write after the end of this process, and a container ends with this process.
    """
    context: Any = spark.sparkContext
    spark.stop()
    if archive is not None and not archive.exists():
        with suppress(Py4JError, OSError):  # the connection breaks: the JVM has ended
            context._jvm.java.lang.System.exit(0)  # noqa: SLF001  # PySpark has no public way


def batches_per_snapshot(batch: timedelta) -> int:
    """Return the number of batches from one snapshot of the state to the next: a restart replays the batches since.

    More frequent snapshots than Spark's uploads have no use.
    """
    return max(1, round(MAINTENANCE / batch))


def default_archive(jars: Path) -> Path:
    """Return the path of the archive of classes that an installation makes."""
    return jars / "classes.jsa"


def archive_of(settings: JobSettings) -> Path | None:
    """Return the archive of classes that the settings name, or the installation's, if it has one."""
    archive = default_archive(settings.jars)
    return settings.class_archive or (archive if archive.exists() else None)


def java_options(options: str, archive: Path | None) -> str:
    """Return the options, with those that read the archive of classes, or write it when the job ends."""
    if archive is None:
        return options
    use = "SharedArchiveFile" if archive.exists() else "ArchiveClassesAtExit"
    return f"{options} -XX:{use}={archive.resolve()} -Xlog:cds=off -Xlog:cds+dynamic=off"


def _submitted() -> bool:
    """Return whether spark-submit started this process: then a gateway to its JVM is there already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
