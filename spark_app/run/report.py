"""The job's report: one JSON line for each batch, failure and restart, on standard output."""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal

from pyspark.sql.streaming.listener import StreamingQueryProgress

from spark_app.query.observations import count_decoded, count_filtered
from spark_app.run.metrics import QueryMetrics

Write = Callable[[str], object]
Level = Literal["info", "warning", "error"]


class JobReport:
    """Writes lines. Times are in milliseconds, as Spark measures them."""

    def __init__(self, write: Write = sys.stdout.write) -> None:
        self._write = write

    def started(self, settings: dict[str, Any], slots: int, http_port: int | None = None) -> None:
        """Write the settings, and the addresses of /healthz and /metrics."""
        self.line("started", slots=slots, http_port=http_port, settings=settings)

    def ended(self, why: str, level: Level = "info") -> None:
        """Report the end of the driver."""
        self.line("ended", level, why=why)

    def line(self, what: str, level: Level = "info", **facts: object) -> None:
        """Write one line, in one piece: the applications have a thread each. A full disk ends none of them."""
        known = {"ts": datetime.now(UTC).isoformat(), "level": level}
        text = json.dumps({"job": what, **known, **facts}, default=str) + "\n"
        with suppress(OSError):
            self._write(text)
            sys.stdout.flush()


class QueryReport:
    """Reports on the query of one application, in lines and in metrics."""

    def __init__(self, job: JobReport, application: str, metrics: QueryMetrics) -> None:
        self._job = job
        self._application = application
        self._metrics = metrics

    def catching_up(self, records: int) -> None:
        """Report that the next run reads this many records in one micro-batch."""
        self._metrics.catching_up(records)
        self._line("catching_up", records=records)

    def republishing(self) -> None:
        """Report that the next run publishes each window of a state that was restored or rebuilt."""
        self._metrics.republishing()
        self._line("republishing")

    def live(self) -> None:
        """Report that the next run reads records as they come."""
        self._metrics.live()

    def starting(self) -> None:
        """Report that the query starts."""
        self._metrics.starting()

    def running(self) -> None:
        """Report that the query was started."""
        self._metrics.running()

    def batch(self, progress: StreamingQueryProgress) -> None:
        """Report a committed batch.

        `filtered` counts the events that the state's filter excluded, `late` the records that were dropped because
        their window had expired. A raw source has `decoded` events, and `refused` records.
        """
        self._metrics.batch(progress)
        operators = progress.stateOperators
        self._line(
            "batch",
            "info",
            batch=progress.batchId,
            records=self._metrics.records(progress.numInputRows),
            filtered=count_filtered(progress),
            late=sum(operator.numRowsDroppedByWatermark for operator in operators),
            expired=operators[0].numRowsRemoved if operators else 0,
            watermark=progress.eventTime.get("watermark"),
            took=progress.durationMs.get("triggerExecution"),
            **count_decoded(progress),
        )

    def idle(self) -> None:
        """Report that the query waits for records."""
        self._metrics.idle()

    def failed(self, problem: str, failures: int, pause_s: float) -> None:
        """Report that the query failed, and restarts after a pause."""
        self._metrics.failed()
        self._line("failed", "warning", problem=problem, failures=failures, restart_in=round(pause_s * 1000))

    def gave_up(self, why: str) -> None:
        """Report that the application stops, or restarts after a long pause while others run."""
        self._metrics.gave_up(why)
        self._line("gave_up", "error", why=why)

    def warning(self, problem: str) -> None:
        """Report a problem that does not stop the application."""
        self._line("warning", "warning", problem=problem)

    def _line(self, what: str, level: Level = "info", **facts: object) -> None:
        self._job.line(what, level, application=self._application, **facts)
