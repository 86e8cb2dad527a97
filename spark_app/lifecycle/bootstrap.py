"""Bootstrap: builds the state of events of the past before the first start of the job.

The events are written to the topic of events with the times at which they were measured. So the state is built
from the topic, and not from a file: a rebuild from the first record runs at the speed of a batch, and the job continues
from its end. A bootstrap that was killed continues; no event is written twice.
"""

import hashlib
from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from contracts.model.application import Application
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.generations import active_folder, generation_folder
from spark_app.checkpoint.identity import found_at
from spark_app.lifecycle.errors import HistoryDeletedError, NotMergedError, OtherHistoryError, StateExistsError
from spark_app.lifecycle.history import HistoryFile, history_files, history_records
from spark_app.lifecycle.history_writer import HistoryPosition, HistoryWriter
from spark_app.lifecycle.rebuild import Rebuild
from spark_app.settings import JobSettings
from spark_app.topics.identity import identify_topic
from spark_app.topics.offsets import Positions, first_offsets
from spark_app.topics.times import OWN_TIMES, RETENTION, STAMP, TopicTimes

ROWS = 50_000
"""The number of rows of one transaction."""
FILES = "stateloop.history"
"""The file in the folder of a generation with the digest of the files that it is the state of."""
Report = Callable[[HistoryFile, HistoryPosition], object]


def has_lost(deleted: int, read: Positions, first: Positions) -> bool:
    """Return whether a topic has deleted records that a build has not read, and more than the first `deleted` ones.

    `read` are the positions up to which the build has read, none before it begins; `first` are the first offsets.
    """
    if read:
        return any(offset > read.get(partition, 0) for partition, offset in first.items())
    return sum(first.values()) > deleted


class Bootstrap:
    """Writes files of events to the topic, and builds the state."""

    def __init__(
        self, spark: SparkSession, application: Application, settings: JobSettings, paths: Sequence[str]
    ) -> None:
        """List the files, and check the checkpoint. Raises NoHistoryError, StateExistsError and NotMergedError."""
        if application.processor is not None:
            remedy = "send the events to its topic, and start the job with an empty checkpoint"
            raise NotMergedError(application.name, "a bootstrap", remedy)
        self._spark = spark
        self._application = application
        self._settings = settings
        self._topic = application.topics.events
        self._times = TopicTimes(settings, self._topic)
        self._files = history_files(spark, paths)
        self._digest = hashlib.sha256(repr(self._files).encode()).hexdigest()
        self._checkpoint = CheckpointFolder(spark, settings.checkpoint)
        self.name = application.name
        active = active_folder(self._checkpoint)
        self.is_done = found_at(active) is not None
        """Whether the active generation is the state of these files."""
        if self.is_done and active.read(FILES) != self._digest:
            raise StateExistsError(settings.checkpoint)

    def write(self, report: Report) -> HistoryPosition:
        """Write the rows that are not written yet; return the position behind the last one.

        Raises OtherHistoryError, HistoryDeletedError and HistoryWriteError, as `identify`, and what Spark raises.
        """
        writer = HistoryWriter(self._settings, self._topic)
        try:
            position = self._begin(writer)
            while position.file < len(self._files):
                position = self._write_file(writer, self._files[position.file], position, report)
        finally:
            writer.close()
        if position.config:
            self._times.change({STAMP: position.config[STAMP]})
        return position

    def rebuild(self) -> Rebuild:
        """Return the rebuild of the state from all records of the topics. Raises as `identify`."""
        return Rebuild(self._spark, self._application, self._settings, is_complete=True)

    def finish(self, position: HistoryPosition) -> None:
        """Let the topic delete old events again, which the state has. Raises HistoryWriteError."""
        if position.config:
            self._times.change(position.config)

    def activate(self, rebuild: Rebuild, generation: str, now_ms: int) -> None:
        """Activate the generation, which is the state of these files. Raises as `Rebuild.activate`."""
        generation_folder(self._checkpoint, generation).overwrite(FILES, self._digest)
        rebuild.activate(generation, now_ms)

    def _begin(self, writer: HistoryWriter) -> HistoryPosition:
        """Return the position to continue from, after the topic lets records have times of their own."""
        digest, of = self._digest, len(self._files)
        position = writer.position()
        if position is not None and position.is_complete and position.config:
            self._times.change({STAMP: position.config[STAMP]})  # by a process that was killed before it did
        if position is None or (position.files != digest and position.is_complete):
            deleted = sum(self._first_offsets().values())
            position = HistoryPosition(files=digest, of=of, config=self._config(position), deleted=deleted)
            writer.commit(position)  # before the settings change, or they would be lost with this process
        if position.files != digest:
            raise OtherHistoryError(self._topic, position.file, position.of)
        if position.is_complete:
            return self._kept(writer, position)
        if position.config:
            self._times.change(OWN_TIMES)
        return position

    def _kept(self, writer: HistoryWriter, position: HistoryPosition) -> HistoryPosition:
        """Have the topic keep the rows, which are all written: an earlier run may have let it delete them."""
        position = position.model_copy(update={"config": self._config(position)})
        writer.commit(position)
        if position.config:
            self._times.change({RETENTION: OWN_TIMES[RETENTION]})
        if has_lost(position.deleted, self.rebuild().read(), self._first_offsets()):
            self.finish(position)
            raise HistoryDeletedError(self._topic)
        return position

    def _first_offsets(self) -> Positions:
        return first_offsets(self._settings, [identify_topic(self._settings, self._application, self._topic)])

    def _config(self, former: HistoryPosition | None) -> dict[str, str]:
        """Return the settings to restore: of an earlier bootstrap that was killed before it restored them, its own."""
        if self._application.topics.replay:
            return {}
        current = self._times.current()
        return former.config if former and current[RETENTION] == OWN_TIMES[RETENTION] else current

    def _write_file(
        self, writer: HistoryWriter, file: HistoryFile, position: HistoryPosition, report: Report
    ) -> HistoryPosition:
        """Write the rest of a file; return the position of the next one."""
        row, refused = position.row, position.refused
        for record in history_records(self._spark, self._application, file.path, position.row):
            if record.dead_letter is None:
                writer.write(self._topic, record.key, record.value, record.timestamp_ms)
            else:
                topic = self._application.topics.dead_letters
                writer.write(topic, record.key, record.dead_letter, record.timestamp_ms)
                refused += 1
            row = record.row + 1
            if row % ROWS == 0:
                position = position.model_copy(update={"row": row, "refused": refused})
                writer.commit(position)
                report(file, position)
        report(file, position.model_copy(update={"row": row, "refused": refused}))
        following = position.model_copy(update={"file": position.file + 1, "row": 0, "refused": refused})
        writer.commit(following)
        return following
