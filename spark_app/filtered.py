"""The filter of the state: drops the events that do not pass, and counts them in the progress of each batch."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.listener import StreamingQueryProgress

from contracts.types.filters import Filter
from spark_app.columns import REASON, field_column

OBSERVATION = "filter"
"""The name of the observed metrics. Spark evaluates them in each task, in real-time mode too."""
FILTERED = "filtered"


def passing(events: DataFrame, where: Filter | None) -> DataFrame:
    """Return the decoded events without those of a valid shape that do not pass."""
    if where is None:
        return events
    filtered = f"({REASON} IS NULL AND NOT coalesce({where.sql(field_column)}, false))"
    return events.observe(OBSERVATION, F.expr(f"count_if{filtered}").alias(FILTERED)).where(f"NOT {filtered}")


def count_filtered(progress: StreamingQueryProgress) -> int:
    """Return how many events did not pass in a batch."""
    observed = progress.observedMetrics.get(OBSERVATION)
    return observed[FILTERED] if observed else 0
