"""The job of one application: it claims the topics and the checkpoint, and keeps the query running."""

import threading
import time
from contextlib import closing

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from contracts.errors import StateloopError
from contracts.model.application import Application
from contracts.model.emit import Emit
from services.runtime.job_progress import JobProgress
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.blocking import BlockingKafkaProducer
from services.runtime.topic_owners import TopicOwners
from spark_app.checkpoint.commit_log import committed_positions
from spark_app.checkpoint.damage import UNREADABLE_STATE, require_undamaged
from spark_app.checkpoint.fence import Fence
from spark_app.checkpoint.first_window import require_whole_windows
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.generations import active, active_folder
from spark_app.checkpoint.identity import claim, identity, verify
from spark_app.checkpoint.keeper import kept
from spark_app.checkpoint.lease import acquire
from spark_app.checkpoint.owner import this_job
from spark_app.checkpoint.unpublished_windows import stored_windows
from spark_app.errors import ConcurrentCommitError
from spark_app.query.pipeline import pipeline, scans
from spark_app.query.state_model import state_name
from spark_app.run.heartbeat import WITHIN, Heartbeat
from spark_app.run.lag import JobLag
from spark_app.run.low_watermark import LowWatermark, RawProgress, committed_by
from spark_app.run.metrics import JobMetrics
from spark_app.run.published_progress import PublishedProgress
from spark_app.run.report import JobReport, QueryReport
from spark_app.run.session import query_session, slots, stop_queries
from spark_app.run.start import QueryRun, Starter
from spark_app.run.supervise import Failures, supervise
from spark_app.settings import JobSettings
from spark_app.topics.identity import TopicIdentity, identify
from spark_app.topics.offsets import SourceOffsets, TopicOffsets, first_offsets


class ApplicationJob:
    """Runs the query of one application, with a checkpoint, a lease and metrics of its own."""

    def __init__(
        self,
        application: Application,
        settings: JobSettings,
        report: JobReport,
        metrics: JobMetrics,
        raw: RawProgress,
    ) -> None:
        self._application = application
        self._settings = settings
        self._raw = raw
        batch = settings.batch_of(application)
        query_metrics = metrics.query(application.name, batch, max(batch, settings.batch), scans=scans(application))
        query_metrics.about(state_name(application), settings.checkpoint)
        self.name = application.name
        self.report = QueryReport(report, application.name, query_metrics)
        self._metrics = query_metrics

    def slots(self) -> int:
        """Return how many tasks of the query run at once; by the declaration, while the broker has no such topics."""
        try:
            partitions = identify(self._settings, self._application)[0].partitions
        except StateloopError:  # `run` raises it, so that the other applications run
            partitions = self._application.topics.partitions
        return slots(self._application, partitions, self._settings.state_partitions or partitions)

    def run(self, spark: SparkSession, stopping: threading.Event) -> None:
        """Run until `stopping` is set. Raises StateloopError when the application gives up."""
        application, settings, report = self._application, self._settings, self.report
        topics = identify(settings, application)
        owners = TopicOwners(application, KafkaAdmin(settings.client(), "topic-owners"), report.warning)
        former = owners.claim()
        state_partitions = settings.state_partitions or topics[0].partitions
        own = query_session(spark, settings.batch_of(application), state_partitions)
        checkpoint = CheckpointFolder(own, settings.checkpoint)
        lease = acquire(checkpoint, this_job(own))
        fence = Fence(own, lease.owner.id)
        with kept(lease, lambda: stop_queries(own), self.report.warning, fence) as require_lease:
            folder, activation = active_folder(checkpoint), active(checkpoint)
            now_ms = max(time.time_ns() // 1_000_000, former + 1)  # the clock may be behind a former job's
            mine = identity(application, topics, state_partitions)
            epoch = claim(folder, mine, now_ms, is_activated=activation is not None)
            published = activation.epoch if activation else epoch
            if published != former:
                owners.claim(published)
            if committed_positions(folder) is None:
                require_whole_windows(folder, settings, application, topics, report.warning)
            offsets = SourceOffsets(settings, application, topics)
            low, lag = self._low_watermark(offsets), JobLag(offsets.ends, self._metrics)
            heartbeat = self._heartbeat(low)
            query = pipeline(
                own,
                application,
                settings.at(folder.path),
                published,
                topics[0].partitions,
                heartbeat.prefix,
                stored_windows(folder).ranges,
                fence.sql(),
            )
            starter = Starter(own, settings, application, folder, query, report, heartbeat)

            give_up = max(settings.give_up, 2 * settings.batch_of(application))  # only a committed batch is progress
            failures = Failures(give_up, time.monotonic)

            def start() -> QueryRun:
                """Check lease, topics and checkpoint at each start: a topic may have been deleted and created again."""
                fence.renew(lease)
                identities = identify(settings, application)
                verify(folder, identity(application, identities, state_partitions), epoch)
                if UNREADABLE_STATE in failures.problem:
                    require_undamaged(folder, failures.count, require_lease)
                positions = committed_positions(folder) or {}
                low.committed(positions)
                lag.committed(first_offsets(settings, identities) | positions)
                run = starter.start(identities)
                lag.is_measured = run.is_catch_up or application.emit is not Emit.EVENT
                return run

            progress = self._progress(published, low, topics[0].partitions)
            upkeep = Upkeep(owners, published, low, lag, heartbeat, progress, settings.batch.total_seconds())
            with closing(progress):
                try:
                    supervise(start, report, failures, stopping, upkeep)
                except ConcurrentCommitError:
                    lease.renew()  # raises that it is lost, if the other job has it: this job was suspended
                    raise

    def _heartbeat(self, low: LowWatermark) -> Heartbeat:
        producer = BlockingKafkaProducer(self._settings.client(), "heartbeat", WITHIN)
        return Heartbeat(self._application, self._settings, low, producer)

    def _progress(self, epoch: int, low: LowWatermark, partitions: int) -> PublishedProgress:
        snapshots = TopicIdentity(self._application.topics.snapshots, "", partitions)
        recorded = JobProgress(KafkaAdmin(self._settings.client(), "progress"), snapshots.name)
        ends = TopicOffsets(self._settings, [snapshots]).ends
        return PublishedProgress(self._application, epoch, ends, recorded, low)

    def _low_watermark(self, offsets: SourceOffsets) -> LowWatermark:
        raw = [source.topic for source in self._application.raw]
        return LowWatermark(offsets, lambda: self._raw.time(raw), self._raw.broker_clock)


class Upkeep:
    """Writes heartbeats, records the progress and renews the claims while the query runs.

    Raises ForeignTopicsError after a takeover, and OlderCheckpointError when a newer checkpoint has a job.
    """

    def __init__(  # noqa: PLR0913, PLR0917  # what it keeps up
        self,
        owners: TopicOwners,
        epoch: int,
        low: LowWatermark,
        lag: JobLag,
        heartbeat: Heartbeat,
        published: PublishedProgress,
        renew_every_s: float,
    ) -> None:
        self._owners = owners
        self._epoch = epoch
        self._low = low
        self._lag = lag
        self._heartbeat = heartbeat
        self._published = published
        self._every_s = renew_every_s
        self._renewed_at = time.monotonic()

    def after(self, progress: StreamingQueryProgress) -> None:
        """Count a committed batch."""
        positions = committed_by(progress)
        self._low.committed(positions)
        self._lag.committed(positions)
        self._heartbeat.after(progress)
        self._published.after(progress)
        self._renew()

    def look(self) -> None:
        """Measure the lag."""
        self._lag.measure()

    def idle(self) -> None:
        """Handle a query that waits for records."""
        self._low.advance()
        self._heartbeat.beat()
        self._published.record()
        self._renew()

    def _renew(self) -> None:
        now = time.monotonic()
        if now - self._renewed_at >= self._every_s:
            self._owners.claim(self._epoch)
            self._renewed_at = now
