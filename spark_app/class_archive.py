"""Make the archive of the classes that a job loads: `python -m spark_app.class_archive`.

A JVM that maps it need not parse them again, and starts some seconds sooner. It holds for one JVM and the same jars;
with others the JVM ignores it.
"""

import sys
import tempfile
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from spark_app.run.session import default_archive, open_session, query_session
from spark_app.settings import JobSettings

TASKS = 2
ROWS_PER_S = 10
BATCHES = 3


def main() -> int:
    """Make the archive next to the jars, unless there is one that is newer than all jars of Spark."""
    jars = JobSettings(application="").jars
    archive = default_archive(jars)
    if archive.exists() and archive.stat().st_mtime >= newest(jars / "spark", Path(pyspark.__file__).with_name("jars")):
        return 0
    print(f"Making the archive of Spark's classes, {archive} (half a minute)")
    with tempfile.TemporaryDirectory(dir=jars) as folder:  # on one file system a move is atomic: a job may start now
        made = Path(folder) / archive.name
        settings = JobSettings(application="", jars=jars, class_archive=made)
        with open_session(settings, TASKS) as spark:
            spark.sparkContext.setLogLevel("OFF")
            run_query(query_session(spark, settings.batch, TASKS), folder)
        made.replace(archive)
    return 0


def newest(*folders: Path) -> float:
    """Return the time of the newest jar."""
    return max(jar.stat().st_mtime for folder in folders for jar in folder.glob("*.jar"))


def run_query(spark: SparkSession, folder: str) -> None:
    """Run a query with a state, as the job's are, which loads its classes."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", ROWS_PER_S).load()
    rows = rows.withWatermark("timestamp", "1 minute").dropDuplicatesWithinWatermark(["value"])
    keys = rows.groupBy(F.window("timestamp", "1 hour"), (F.col("value") % 10).alias("key"))
    counts = keys.agg(F.count("*").alias("count"), F.max_by("value", "timestamp").alias("latest"))
    snapshots = counts.select(F.to_json(F.struct("*")).cast("binary").alias("value"))
    writer = snapshots.writeStream.format("noop").outputMode("update").option("checkpointLocation", f"{folder}/state")
    query = writer.trigger(processingTime="1 second").start()
    while (progress := query.lastProgress) is None or progress.batchId < BATCHES:
        query.awaitTermination(1)
    query.stop()


if __name__ == "__main__":
    sys.exit(main())
