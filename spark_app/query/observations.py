"""The counts that Spark observes in the tasks of a batch, in real-time mode too, and gives in its progress."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.listener import StreamingQueryProgress

FILTER, PROCESSOR, RAW, SINK = "filter", "processor", "raw", "sink"
"""The names of the observed metrics."""
FILTERED, FAILED, DEAD_LETTERS = "filtered", "failed", "dead_letters"


def observe_filtered(events: DataFrame, is_filtered: str) -> DataFrame:
    """Return the events, of which Spark counts those where this SQL is true."""
    return events.observe(FILTER, F.expr(f"count_if({is_filtered})").alias(FILTERED))


def count_filtered(progress: StreamingQueryProgress) -> int:
    """Return how many events did not pass the filter of the state in a batch."""
    observed = progress.observedMetrics.get(FILTER)
    return observed[FILTERED] if observed else 0


def observe_failures(results: DataFrame, is_failure: str) -> DataFrame:
    """Return the results of a processor, of which Spark counts those where this SQL is true."""
    return results.observe(PROCESSOR, F.expr(f"count_if({is_failure})").alias(FAILED))


def count_failures(progress: StreamingQueryProgress) -> int:
    """Return on how many records and timers the processor raised in a batch."""
    observed = progress.observedMetrics.get(PROCESSOR)
    return observed[FAILED] if observed else 0


def observe_dead_letters(rows: DataFrame, topic: str) -> DataFrame:
    """Return the rows of the sink, of which Spark counts those of this topic."""
    return rows.observe(SINK, F.count_if(F.col("topic") == topic).alias(DEAD_LETTERS))


def count_dead_letters(progress: StreamingQueryProgress) -> int:
    """Return how many dead letters a batch wrote."""
    observed = progress.observedMetrics.get(SINK)
    return observed[DEAD_LETTERS] if observed else 0


def observe_decoded(counts: DataFrame) -> DataFrame:
    """Return the counts of a raw source's tasks, `decoded` and `refused`, of which Spark makes the sums."""
    return counts.observe(RAW, *(F.sum(name).alias(name) for name in counts.columns))


def count_decoded(progress: StreamingQueryProgress) -> dict[str, int]:
    """Return how many events a batch of a raw source wrote, `decoded`, and how many dead letters, `refused`."""
    observed = progress.observedMetrics.get(RAW)
    return {name: observed[name] or 0 for name in ("decoded", "refused")} if observed else {}
