"""The job's report: one JSON line for each batch, failure and restart, on standard output."""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal

from pyspark.sql.streaming.listener import StreamingQueryProgress

from spark_app.figures import JobMetrics
from spark_app.filtered import count_filtered

Write = Callable[[str], object]
Level = Literal["info", "warning", "error"]


class JobReport:
    """Writes lines. Times are in milliseconds, as Spark measures them."""

    def __init__(self, write: Write = sys.stdout.write) -> None:
        self._write = write
        self._figures: JobMetrics | None = None

    def count(self, figures: JobMetrics) -> None:
        """Pass each later report to these metrics too."""
        self._figures = figures

    def started(self, settings: dict[str, Any], slots: int, http_port: int | None = None) -> None:
        """The settings that are in force, and where /healthz and /metrics answer."""
        self._line("started", slots=slots, http_port=http_port, settings=settings)

    def catching_up(self, records: int) -> None:
        """The next run reads this many records in one micro-batch."""
        if self._figures:
            self._figures.catching_up(records)
        self._line("catching_up", records=records)

    def live(self) -> None:
        """The next run is in real-time mode."""
        if self._figures:
            self._figures.live()

    def starting(self) -> None:
        """The query is about to start."""
        if self._figures:
            self._figures.starting()

    def running(self) -> None:
        """The query was started."""
        if self._figures:
            self._figures.running()

    def batch(self, progress: StreamingQueryProgress) -> None:
        """Report a committed batch.

        `filtered` counts the events that the state's filter excluded, `late` the records that were dropped because
        their window had expired.
        """
        if self._figures:
            self._figures.batch(progress)
        operators = progress.stateOperators
        self._line(
            "batch",
            batch=progress.batchId,
            records=progress.numInputRows,
            filtered=count_filtered(progress),
            late=sum(operator.numRowsDroppedByWatermark for operator in operators),
            expired=operators[0].numRowsRemoved if operators else 0,
            watermark=progress.eventTime.get("watermark"),
            took=progress.durationMs.get("triggerExecution"),
        )

    def failed(self, problem: str, failures: int, pause_s: float) -> None:
        """The query failed, and is started again after a pause."""
        if self._figures:
            self._figures.failed()
        self._line("failed", "warning", problem=problem, failures=failures, restart_in=round(pause_s * 1000))

    def warning(self, problem: str) -> None:
        """Report a problem that the job goes on with."""
        self._line("warning", "warning", problem=problem)

    def ended(self, why: str, level: Level = "info") -> None:
        """The driver ends."""
        self._line("ended", level, why=why)

    def _line(self, what: str, level: Level = "info", **facts: object) -> None:
        known = {"ts": datetime.now(UTC).isoformat(), "level": level}
        self._write(json.dumps({"job": what, **known, **facts}, default=str) + "\n")
        sys.stdout.flush()
