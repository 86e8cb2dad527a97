"""What the job says of itself: one JSON line for each batch, failure and restart, on standard output."""

import json
import sys
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryProgress

Write = Callable[[str], object]


class Report:
    """Writes lines. Times are in milliseconds, as Spark measures them."""

    def __init__(self, write: Write = sys.stdout.write) -> None:
        self._write = write

    def started(self, settings: dict[str, Any], slots: int) -> None:
        """The settings that are in force."""
        self._line("started", slots=slots, settings=settings)

    def batch(self, progress: StreamingQueryProgress) -> None:
        """A committed batch. `late` records came after their life had ended by the watermark, and were dropped."""
        operators = progress.stateOperators
        self._line(
            "batch",
            batch=progress.batchId,
            records=progress.numInputRows,
            late=sum(operator.numRowsDroppedByWatermark for operator in operators),
            expired=operators[0].numRowsRemoved if operators else 0,
            watermark=progress.eventTime.get("watermark"),
            took=progress.durationMs.get("triggerExecution"),
        )

    def failed(self, problem: str, failures: int, pause_s: float) -> None:
        """The query failed, and is started again after a pause."""
        self._line("failed", problem=problem, failures=failures, restart_in=round(pause_s * 1000))

    def ended(self, why: str) -> None:
        """The driver ends."""
        self._line("ended", why=why)

    def _line(self, what: str, **facts: object) -> None:
        self._write(json.dumps({"job": what, **facts}, default=str) + "\n")
        sys.stdout.flush()
