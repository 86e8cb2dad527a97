"""The query of a raw source: a stateless micro-batch query that runs the decoder on each record of a topic."""

from importlib.util import find_spec

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamWriter

from contracts.model.application import Application
from contracts.model.raw import Raw
from spark_app.errors import MissingPackageError
from spark_app.query.kafka import connector
from spark_app.query.observations import observe_decoded
from spark_app.query.pipeline import read
from spark_app.settings import JobSettings

EXTRA = ("numpy", "pandas", "pyarrow")
MOST_RECORDS = 20_000
"""The number of records in a batch: after it there is progress to keep."""


def check_extra() -> None:
    """Raise MissingPackageError where a package of the extra is not installed."""
    for package in EXTRA:
        if find_spec(package) is None:
            raise MissingPackageError(package, "raw")


def raw_query(
    spark: SparkSession, application: Application, raw: Raw, settings: JobSettings, checkpoint: str
) -> DataStreamWriter:
    """Return the query, ready to start. Its own output is the number of events and dead letters that it wrote.

    Raises MissingPackageError.
    """
    check_extra()
    from spark_app.raw.decode import RawTask  # noqa: PLC0415  # pyarrow is there only with the extra

    task = RawTask(settings.application, application.name, raw.topic, tuple(sorted(settings.client().items())))
    options = {"includeHeaders": "true", "maxOffsetsPerTrigger": str(MOST_RECORDS)}
    records = read(spark, connector(settings.client()) | options, raw.topic)
    columns = records.select(
        "partition", "offset", F.expr("unix_micros(timestamp)").alias("micros"), "key", "value", "headers"
    )
    counts = observe_decoded(columns.mapInArrow(task, "decoded BIGINT, refused BIGINT"))
    sink = counts.writeStream.format("noop").queryName(raw.name).option("checkpointLocation", checkpoint)
    return sink.outputMode("append")
