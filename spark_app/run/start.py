"""Starts the query: to read records as they come, or in a micro-batch that catches up with a long backlog first.

After a restore or a rebuild, that micro-batch publishes each window of the state.
"""

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from contracts.model.application import Application
from contracts.model.emit import Emit
from spark_app.checkpoint.commit_log import committed_positions
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.republish import is_republication_due, repeat_request
from spark_app.query.pipeline import catching_up, live, republishing
from spark_app.run.backlog import SHRINKS, measure
from spark_app.run.heartbeat import Heartbeat
from spark_app.run.report import QueryReport
from spark_app.settings import JobSettings
from spark_app.topics.identity import TopicIdentity


@dataclass(frozen=True)
class QueryRun:
    """One run of the query. A run that catches up stops by itself."""

    query: StreamingQuery
    is_catch_up: bool = False


class Starter:
    """Chooses the mode of each run by the backlog that it finds."""

    def __init__(  # noqa: PLR0913, PLR0917  # its dependencies
        self,
        spark: SparkSession,
        settings: JobSettings,
        application: Application,
        checkpoint: CheckpointFolder,
        query: DataStreamWriter,
        report: QueryReport,
        heartbeat: Heartbeat,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._application = application
        self._limit = application.state.grace / 2
        self._is_replay = application.topics.replay
        self._checkpoint = checkpoint
        self._query = query
        self._report = report
        self._heartbeat = heartbeat
        self._caught_up_with = 0

    def start(self, topics: list[TopicIdentity]) -> QueryRun:
        """Start the next run. Raises BrokerUnreachableError, CheckpointUnreachableError, and Spark's errors."""
        # A closed window is published once: a restored state has none of those. And a processor publishes what changes.
        republishes = self._application.emit is not Emit.CLOSE and self._application.processor is None
        if republishes and is_republication_due(self._checkpoint):
            repeat_request(self._checkpoint)
            self._report.republishing()
            self._heartbeat.write()  # without a record there would be no batch
            return QueryRun(republishing(self._spark, self._query), is_catch_up=True)
        records = self._backlog(topics) if self._settings.catch_up else 0
        self._caught_up_with = records
        if records:
            self._report.catching_up(records)
            return QueryRun(catching_up(self._query, self._application), is_catch_up=True)
        self._report.live()
        return QueryRun(live(self._query, self._application.emit, self._settings.batch_of(self._application)))

    def _backlog(self, topics: list[TopicIdentity]) -> int:
        """Return how many records to catch up with; 0 for a backlog that real-time mode may read.

        Records may come as fast as the job catches up, and a replay's are always old. It catches up again if the last
        pass has left less than half; a replay catches up once.
        """
        backlog = measure(self._settings, topics, committed_positions(self._checkpoint), self._limit)
        before = self._caught_up_with
        may_stay_long = before > 0 and (self._is_replay or backlog.records > before * SHRINKS)
        return backlog.records if backlog.must_be_caught_up(may_stay_long=may_stay_long) else 0
