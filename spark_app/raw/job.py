"""The job of one raw source: it claims a checkpoint of its own, and keeps the query running."""

import threading
import time
from datetime import timedelta

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from contracts.errors import StateloopError
from contracts.model.application import Application
from contracts.model.raw import Raw
from spark_app.checkpoint.commit_log import committed_positions
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.keeper import kept
from spark_app.checkpoint.lease import acquire
from spark_app.checkpoint.owner import this_job
from spark_app.errors import TopicReplacedError
from spark_app.query.pipeline import interval
from spark_app.raw.query import raw_query
from spark_app.run.lag import JobLag
from spark_app.run.low_watermark import LowWatermark, RawProgress, clock, committed_by
from spark_app.run.metrics import JobMetrics
from spark_app.run.report import JobReport, QueryReport
from spark_app.run.session import query_session, stop_queries
from spark_app.run.start import QueryRun
from spark_app.run.supervise import Failures, supervise
from spark_app.settings import JobSettings
from spark_app.topics.identity import identify_topic
from spark_app.topics.offsets import SourceOffsets, first_offsets

INTERVAL = timedelta(milliseconds=200)
"""The interval from the start of one batch to the next: a batch costs the driver some tens of milliseconds."""


class RawJob:
    """Runs the query of one raw source, whose events this application is the first to read."""

    def __init__(  # noqa: PLR0913, PLR0917  # its dependencies
        self,
        application: Application,
        raw: Raw,
        settings: JobSettings,
        report: JobReport,
        metrics: JobMetrics,
        progress: RawProgress,
    ) -> None:
        self._application = application
        self._raw = raw
        self._settings = settings
        self._progress = progress
        query_metrics = metrics.query(raw.name, INTERVAL, settings.batch)
        query_metrics.about(raw.name, self._folder())
        self.name = raw.name
        self.report = QueryReport(report, raw.name, query_metrics)
        self._metrics = query_metrics

    def slots(self) -> int:
        """Return how many tasks of the query run at once; by the declaration, while the broker has no such topic."""
        try:
            return identify_topic(self._settings, self._application, self._raw.topic).partitions
        except StateloopError:  # `run` raises it, so that the applications run
            return self._application.topics.partitions

    def run(self, spark: SparkSession, stopping: threading.Event) -> None:
        """Run until `stopping` is set. Raises StateloopError when the source gives up."""
        settings = self._settings
        topic = identify_topic(settings, self._application, self._raw.topic)
        own = query_session(spark, INTERVAL, topic.partitions)
        # A topic that was deleted and created again has other records at the same offsets.
        folder = CheckpointFolder(own, f"{self._folder()}/{topic.id}")
        lease = acquire(folder, this_job(own))
        with kept(lease, lambda: stop_queries(own), self.report.warning):
            query = raw_query(own, self._application, self._raw, settings, folder.path)
            offsets = SourceOffsets(settings, self._application, [topic])
            low, lag = LowWatermark(offsets, clock, self._progress.broker_clock), JobLag(offsets.ends, self._metrics)

            def start() -> QueryRun:
                """Check lease and topic at each start."""
                lease.renew()
                if identify_topic(settings, self._application, self._raw.topic).id != topic.id:
                    raise TopicReplacedError(topic.name)
                positions = committed_positions(folder) or {}
                low.committed(positions)
                lag.committed(first_offsets(settings, [topic]) | positions)
                self.report.live()
                return QueryRun(query.trigger(processingTime=interval(INTERVAL)).start())

            failures = Failures(max(settings.give_up, 2 * INTERVAL), time.monotonic)
            self._progress.add(topic.name, low)
            try:
                supervise(start, self.report, failures, stopping, Follower(low, lag))
            finally:
                self._progress.remove(topic.name)

    def _folder(self) -> str:
        """The folder of its checkpoints, outside of the applications' folders: a new state does not need it."""
        return f"{self._settings.checkpoint.rstrip('/')}-raw/{self._raw.topic}"


class Follower:
    """Follows the low watermark and the lag of a raw source."""

    def __init__(self, low: LowWatermark, lag: JobLag) -> None:
        self._low = low
        self._lag = lag

    def after(self, progress: StreamingQueryProgress) -> None:
        """Handle a committed batch."""
        positions = committed_by(progress)
        self._low.committed(positions)
        self._lag.committed(positions)

    def look(self) -> None:
        """Measure the lag."""
        self._lag.measure()

    def idle(self) -> None:
        """Handle a query that waits for records."""
        self._low.advance()
