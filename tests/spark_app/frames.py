"""The job's expressions on records at hand: the same plan as the query's, over a table instead of a topic."""

from collections.abc import Iterable

from pyspark.sql import SparkSession

from contracts.application import Application
from contracts.record import Record
from spark_app.pipeline import snapshots

SCHEMA = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"


def run(
    spark: SparkSession, application: Application, events: Iterable[Record], feedback: Iterable[Record] = ()
) -> list[tuple[str, bytes | None, bytes]]:
    """What the job publishes at last for these records: topic, key and value, one for each life and each letter."""
    tables = [spark.createDataFrame([_row(record) for record in records], SCHEMA) for records in (events, feedback)]
    rows = snapshots(tables[0], tables[1], application).collect()
    return [(row.topic, row.key and row.key.encode(), row.value.encode()) for row in rows]


def _row(record: Record) -> tuple[object, ...]:
    return record.key, record.value, record.topic, record.partition, record.offset, record.timestamp
