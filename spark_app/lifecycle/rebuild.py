"""Rebuild: a new generation of the state, built from the records in the topics while the job runs.

The build reads the records that a live window can have, merges them as the application of this release declares, and
publishes nothing. When it is level with the topics, its generation is activated: the running job stops, and the job of
this release continues from the new one. That job reads the records since and publishes each window once. So readers
see no half-built state, and workers repeat no call that has its answer. A build that was killed continues.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from contracts.model.application import Application
from contracts.model.emit import Emit
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.topic_owners import TopicOwners
from spark_app.checkpoint.commit_log import committed_positions
from spark_app.checkpoint.first_window import MILLISECOND, require_whole_windows
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.generations import (
    FOLDER,
    Activation,
    activate,
    active,
    active_folder,
    generation_folder,
    previous,
    unfinished,
)
from spark_app.checkpoint.identity import claim, found_at, identity
from spark_app.checkpoint.keeper import kept
from spark_app.checkpoint.lease import acquire, take_over
from spark_app.checkpoint.owner import this_job
from spark_app.checkpoint.republish import request_republication
from spark_app.checkpoint.unpublished_windows import carry_closed, over_until
from spark_app.errors import ActivationConflictError, LeaseLostError, UnreadableCheckpointError
from spark_app.lifecycle.errors import (
    NoGenerationError,
    NotMergedError,
    PartitionsAddedError,
    RebuildFailedError,
    SwitchInterruptedError,
)
from spark_app.lifecycle.handover import Handover
from spark_app.query.pipeline import build, scans
from spark_app.run.backlog import SHRINKS
from spark_app.run.session import query_session, stop_queries
from spark_app.run.supervise import batches, first_line
from spark_app.settings import JobSettings
from spark_app.topics.identity import identify
from spark_app.topics.offsets import EARLIEST_MS, Positions, offset_ranges, offsets_since

CLOCKS = timedelta(minutes=10)
"""The maximum difference of the clocks of two brokers."""
LEVEL = 10_000
"""A build is level with fewer unread records than these: the job reads them in a moment. It also ends when another pass
would not shrink the backlog: records come as fast as it reads."""


@dataclass(frozen=True)
class RebuildPlan:
    """The steps of a rebuild."""

    differences: list[str]
    """The differences of the application from the active generation."""
    generation: str
    """The folder of the new generation."""
    is_begun: bool
    """Whether an interrupted build of this generation continues."""
    records: int
    """The number of records to read."""
    missing: list[str]
    """The records that open windows may lack because a topic no longer has them: a sentence for each partition."""


class Rebuild:
    """Builds a generation of the application's state, and activates it.

    With more `partitions` than the topics have, the generation is for topics with that number. They are added when the
    generation is activated. With `is_complete`, the topics have all records of each window that their records are of:
    all are read, and each window is published.
    """

    def __init__(
        self,
        spark: SparkSession,
        application: Application,
        settings: JobSettings,
        partitions: int | None = None,
        *,
        is_complete: bool = False,
    ) -> None:
        """Identify the topics. Raises NotMergedError, and as `identify`."""
        if application.processor is not None:
            remedy = "start the job with an empty checkpoint, and it publishes each window again"
            raise NotMergedError(application.name, "a rebuild", remedy)
        self._application = application
        self._is_complete = is_complete
        self._settings = settings
        self._topics = identify(settings, application, is_growing=partitions is not None)
        self._partitions = partitions or self._topics[0].partitions
        state_partitions = settings.state_partitions or self._partitions
        self._spark = query_session(spark, settings.batch, state_partitions)
        self._checkpoint = CheckpointFolder(spark, settings.checkpoint)
        grown = [replace(topic, partitions=self._partitions) for topic in self._topics]
        self._mine = identity(application, grown, state_partitions)
        self.scans = scans(application)
        """How often the build reads each record."""

    def plan(self, now_ms: int) -> RebuildPlan:
        """Return the plan of a rebuild. Raises BrokerUnreachableError and CheckpointUnreachableError."""
        begun, since = self._begun(), self._since_ms()
        first, ranges = offsets_since(self._settings, self._topics, since), offset_ranges(self._settings, self._topics)
        done = self._read(begun)
        return RebuildPlan(
            differences=self._differences(),
            generation=begun or f"{FOLDER}{now_ms}",
            is_begun=begun is not None,
            records=sum(
                max(0, end - max(done.get(partition, 0), first[partition])) for partition, (_, end) in ranges.items()
            ),
            missing=[
                f"partition {number} of {topic} begins at offset {begin}: records before it are gone"
                for (topic, number), (begin, _) in sorted(ranges.items())
                if 0 < begin == first[topic, number]
            ],
        )

    def read(self) -> Positions:
        """Return the positions up to which the interrupted build has read; none without one that continues."""
        return self._read(self._begun())

    def build(
        self,
        plan: RebuildPlan,
        now_ms: int,
        report: Callable[[StreamingQueryProgress], object],
        warn: Callable[[str], object],
    ) -> None:
        """Build the generation until it is level with the topics, or as close as it comes.

        Raises RebuildFailedError, and as `acquire`. `warn` receives a line about the windows that are not published.
        """
        folder = generation_folder(self._checkpoint, plan.generation)
        lease = acquire(folder, this_job(self._spark))
        with kept(lease, lambda: stop_queries(self._spark)):
            epoch = max(now_ms, self._former_epoch() + 1)  # later than each answer, also where a build continues
            claim(folder, self._mine, epoch)
            settings = self._settings.at(folder.path)
            since = self._since_ms()
            if committed_positions(folder) is None and not self._is_complete:
                require_whole_windows(folder, self._settings, self._application, self._topics, warn, since_ms=since)
            query = build(self._spark, self._application, settings, epoch, since, self._partitions)
            unread = self._unread(folder)
            while True:
                try:
                    for progress in filter(None, batches(query.start(), threading.Event())):
                        report(progress)
                except PySparkException as error:
                    raise RebuildFailedError(first_line(str(error))) from error
                before, unread = unread, self._unread(folder)
                if unread < LEVEL or unread > before * SHRINKS:
                    return

    def activate(
        self, generation: str, now_ms: int, when_stopped: Callable[[Callable[[], object]], object] = lambda _: None
    ) -> tuple[Activation, Handover]:
        """Stop the running job, and activate a generation for the next one. Return also the handover.

        `when_stopped` runs while no job can. It receives a function to call before each of its steps, which raises
        LeaseLostError if a job may run. Raises ActivationConflictError, also if another generation was activated since
        this one was begun, SwitchInterruptedError, and what it raises.
        """

        def built() -> str:
            stored = found_at(generation_folder(self._checkpoint, generation))
            if stored is not None and stored.epoch <= self._epoch():
                raise ActivationConflictError(self._checkpoint.path)
            return generation

        return self._switch(built, now_ms, when_stopped)

    def _switch(
        self, chosen: Callable[[], str], now_ms: int, when_stopped: Callable[[Callable[[], object]], object]
    ) -> tuple[Activation, Handover]:
        """Activate the generation that is chosen while no job can run.

        With `Emit.CLOSE`, its job publishes no window again that is closed: a former generation may be behind.
        """
        try:
            lease = take_over(self._checkpoint, this_job(self._spark))
            with kept(lease, lambda: False) as require_lease:
                generation = chosen()
                folder = generation_folder(self._checkpoint, generation)
                left = Handover.begin(self._settings, self._application, folder)
                when_stopped(require_lease)
                if self._application.emit is Emit.CLOSE:
                    carry_closed(folder, active_folder(self._checkpoint))
                former_epoch = self._former_epoch()
                require_lease()
                request_republication(folder)
                activation = activate(self._checkpoint, generation, now_ms, former_epoch)
                Handover.finish(folder)
                return activation, left
        except LeaseLostError as error:
            raise SwitchInterruptedError(self._checkpoint.path, error.owner) from error

    def roll_back(self, former: str, now_ms: int) -> tuple[Activation, Handover]:
        """Activate the generation that was active before, which `former` returned.

        Raises ActivationConflictError, also if another one was activated since, SwitchInterruptedError, and what
        `former` and `plan` raise.

        Its job reads the records that came since; those that the topics do not hold any more stop it.
        """

        def unchanged() -> str:
            if self.former() != former:
                raise ActivationConflictError(self._checkpoint.path)
            return former

        return self._switch(unchanged, now_ms, lambda _: None)

    def former(self) -> str:
        """Return the generation that was active before. Raises NoGenerationError, PartitionsAddedError."""
        former = previous(self._checkpoint)
        stored = found_at(generation_folder(self._checkpoint, former)) if former else None
        if former is None or stored is None:
            raise NoGenerationError(self._settings.checkpoint)
        if stored.identity.partitions != self._partitions:
            raise PartitionsAddedError(former, stored.identity.partitions, self._partitions)
        return former

    def _since_ms(self) -> int:
        """Return the time of the oldest record that an open window of the active generation can have.

        Only the watermark shows which windows are published to the end: a job that was down has others that are over by
        the clock. Without a watermark all may be open, but for those that the generation does not publish. A replay's
        records are of any time.
        """
        application, over = self._application, over_until(active_folder(self._checkpoint))
        if self._is_complete or application.topics.replay or over is None:
            return EARLIEST_MS
        return max(EARLIEST_MS, over - (application.skew + CLOCKS) // MILLISECOND)

    def _unread(self, folder: CheckpointFolder) -> int:
        done = committed_positions(folder) or {}
        return sum(
            max(0, end - done.get(partition, begin))
            for partition, (begin, end) in offset_ranges(self._settings, self._topics).items()
        )

    def _begun(self) -> str | None:
        return next((name for name in unfinished(self._checkpoint) if self._continues(name)), None)

    def _read(self, begun: str | None) -> Positions:
        return committed_positions(generation_folder(self._checkpoint, begun)) or {} if begun else {}

    def _continues(self, generation: str) -> bool:
        """Return whether an interrupted build is of this application, and was begun for the active generation.

        One that was begun before a rollback lacks records of windows that the former generation has open again.
        """
        stored = found_at(generation_folder(self._checkpoint, generation))
        return stored is not None and stored.epoch > self._epoch() and not self._mine.differences(stored.identity)

    def _differences(self) -> list[str]:
        try:
            stored = found_at(active_folder(self._checkpoint))
        except UnreadableCheckpointError as error:
            return [str(error)]
        return ["there is no checkpoint"] if stored is None else self._mine.differences(stored.identity)

    def _former_epoch(self) -> int:
        """Return the greatest epoch of a former job, also of one whose checkpoint is lost, and whose clock was ahead.

        The next start of the job reports that the broker does not return it.
        """
        owners = TopicOwners(self._application, KafkaAdmin(self._settings.client(), "topic-owners"), lambda _: None)
        return max(self._epoch(), owners.recorded_epoch())

    def _epoch(self) -> int:
        """Return the epoch of the active generation; 0 where it cannot be read."""
        if (now := active(self._checkpoint)) is not None:
            return now.epoch
        try:
            stored = found_at(self._checkpoint)
        except UnreadableCheckpointError:
            return 0
        return stored.epoch if stored else 0
