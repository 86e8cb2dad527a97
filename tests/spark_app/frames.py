"""The job's expressions on records at hand: the same plan as the query's, over a table instead of a topic."""

from collections.abc import Iterable

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from contracts.model.application import Application
from contracts.records.record import Record
from spark_app.query.pipeline import snapshots
from tests.everything import EPOCH

PARTITIONS = 8
ONE = 1
"""The number of partitions where each record is in the partition of its key."""
SCHEMA = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"


def run(
    spark: SparkSession, application: Application, events: Iterable[Record], feedback: Iterable[Record] = ()
) -> list[tuple[str, bytes | None, bytes]]:
    """Return the final outputs of the job for these records: topic, key and value of each window and dead letter."""
    tables = [spark.createDataFrame([row(record) for record in records], SCHEMA) for records in (events, feedback)]
    answers = tables[1] if application.enrichments else None
    published = snapshots(tables[0], answers, application, EPOCH, ONE)
    rows = published.withColumn("key", F.col("key").cast("binary")).collect()
    return [(row.topic, None if row.key is None else bytes(row.key), row.value.encode()) for row in rows]


def row(record: Record) -> tuple[object, ...]:
    """A record as a row of a table."""
    return record.key, record.value, record.topic, record.partition, record.offset, record.timestamp
