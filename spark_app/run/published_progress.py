"""Records how far the snapshots are complete, for readers that must not judge by their clocks."""

from __future__ import annotations

from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING

from contracts.model.emit import Emit
from spark_app.errors import BrokerUnreachableError
from spark_app.run.heartbeat import EVERY

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.listener import StreamingQueryProgress

    from contracts.model.application import Application
    from services.runtime.job_progress import JobProgress
    from spark_app.run.low_watermark import LowWatermark
    from spark_app.topics.offsets import Positions


class PublishedProgress:
    """Records the low watermark of a query with the end offsets of its snapshots. A replay has none.

    With `Emit.CLOSE` it records the watermark: the snapshots of windows that began before it are published.
    `end_offsets` looks the end offsets of the snapshots up; it may raise BrokerUnreachableError. `clock` measures the
    pauses: the time of day may be set back.
    """

    def __init__(  # noqa: PLR0913, PLR0917  # the parts that it connects
        self,
        application: Application,
        epoch: int,
        end_offsets: Callable[[], Positions],
        progress: JobProgress,
        low: LowWatermark,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._epoch = epoch
        self._end_offsets = end_offsets
        self._progress = progress
        self._low = low
        self._is_live = not application.topics.replay
        self._by_watermark = application.emit is Emit.CLOSE
        self._closed: datetime | None = None
        self._recorded: datetime | None = None
        self._clock = clock
        self._next = clock()

    def after(self, progress: StreamingQueryProgress) -> None:
        """Follow a committed batch."""
        watermark = progress.eventTime.get("watermark")
        self._closed = datetime.fromisoformat(watermark) if watermark else None
        self.record()

    def record(self) -> None:
        """Record the progress if there is some. A broker that is away is no error: a later call records it."""
        now, time = self._clock(), self._closed if self._by_watermark else self._low.time
        if not self._is_live or time is None or time == self._recorded or now < self._next:
            return
        try:
            ends = self._end_offsets()
        except BrokerUnreachableError:
            return
        self._progress.record(time, self._epoch, {number: offset for (_, number), offset in ends.items()})
        self._recorded, self._next = time, now + EVERY.total_seconds()

    def close(self) -> None:
        """Close the client."""
        self._progress.close()
