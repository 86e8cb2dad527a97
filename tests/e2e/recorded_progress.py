"""The progress that a job records, watched over time, and the snapshots that it wrote in spite of it."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from contracts import Emit
from contracts.wire import Snapshot, decode_snapshot
from services.runtime.job_progress import JobProgress
from services.runtime.kafka.admin import KafkaAdmin

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from confluent_kafka import Message

    from contracts import Application
    from services.runtime.job_progress import Published


class RecordedProgress:
    """What the job of one application has recorded so far. `look` must be called again and again."""

    def __init__(self, kafka: str, application: Application) -> None:
        self._application = application
        self._partitions = range(application.topics.partitions)
        self._progress = JobProgress(KafkaAdmin({"bootstrap.servers": kafka}, "progress"), application.topics.snapshots)
        self._recorded: list[dict[int, Published]] = []

    def look(self) -> None:
        """Look at the progress now."""
        positions = self._progress.read(self._partitions) or {}
        if len(positions) == len(self._partitions) and positions != self.newest():
            self._recorded.append(positions)

    def newest(self) -> dict[int, Published]:
        """The newest progress, by partition."""
        return self._recorded[-1] if self._recorded else {}

    def is_final(self, start: datetime) -> bool:
        """Return whether a window that starts then is final in all partitions."""
        return bool(self._recorded) and all(self._is_final(start, position) for position in self.newest().values())

    def late(self, messages: Iterable[Message]) -> list[Snapshot]:
        """Return the snapshots that were written after progress by which their window was final."""
        late = []
        for message in messages:
            partition, snapshot = message.partition() or 0, decode_snapshot(message.value() or b"")
            recorded = [positions[partition] for positions in self._recorded]
            before = bisect_right(recorded, message.offset() or 0, key=lambda position: position.offset)
            if before and self._is_final(snapshot.first_seen, recorded[before - 1]):
                late.append(snapshot)
        return late

    def close(self) -> None:
        """Close the client."""
        self._progress.close()

    def _is_final(self, start: datetime, published: Published) -> bool:
        """With `Emit.CLOSE`, the time is the start of the first window that is not published."""
        application = self._application
        if application.emit is Emit.CLOSE:
            return start < published.time
        return start + application.kept_for + application.skew <= published.time
