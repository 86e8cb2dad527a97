"""The lag of a query that runs in micro-batches: the records of its topics that are in no committed batch.

Spark reports the end offsets of a batch's start, and reads up to them: by its report such a query is never behind.
"""

from collections.abc import Callable

from spark_app.errors import BrokerUnreachableError
from spark_app.run.metrics import QueryMetrics
from spark_app.topics.offsets import Positions


class JobLag:
    """Measures the lag of one query. `end_offsets` may raise BrokerUnreachableError."""

    def __init__(self, end_offsets: Callable[[], Positions], metrics: QueryMetrics) -> None:
        self.is_measured = True
        """False while the query runs in real-time mode: Spark reports the end offsets of a batch's end."""
        self._end_offsets = end_offsets
        self._metrics = metrics
        self._committed: Positions = {}

    def committed(self, positions: Positions) -> None:
        """Follow a commit."""
        self._committed |= positions

    def measure(self) -> None:
        """Record the lag. A broker that is away is no error: a later call records it."""
        if not self.is_measured:
            return
        try:
            self._metrics.lag(self._end_offsets(), self._committed)
        except BrokerUnreachableError:
            return
