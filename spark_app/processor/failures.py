"""Counts the records and timers on which a processor raised, in the progress of each batch."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.listener import StreamingQueryProgress

OBSERVATION = "processor"
"""The name of the observed metrics."""
FAILED = "failed"


def observed(results: DataFrame, is_failure: str) -> DataFrame:
    """Return the results of a processor, of which Spark counts those where this SQL is true."""
    return results.observe(OBSERVATION, F.expr(f"count_if({is_failure})").alias(FAILED))


def count_failed(progress: StreamingQueryProgress) -> int:
    """Return on how many records and timers the processor raised in a batch."""
    found = progress.observedMetrics.get(OBSERVATION)
    return found[FAILED] if found else 0
