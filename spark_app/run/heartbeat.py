"""Heartbeats: records that move the watermark, by which windows expire and close.

No other record moves it: a record may be read while older ones of another partition are unread, or not decoded yet. A
heartbeat has the low watermark of the job, so all records that arrived before its time are merged already. It has no
value, and its key has a prefix that is new in each run of the job: a later run, which may continue from an older state,
ignores it. A replay gets none: its time is not the clock's, and its records move its watermark.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING

from contracts.model.emit import Emit
from contracts.records.record import HEARTBEAT_KEY
from services.runtime.errors import DeliveryFailedError
from services.runtime.kafka.values import BY_KEY, Output
from spark_app.run.low_watermark import clock
from spark_app.topics.identity import sources

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.listener import StreamingQueryProgress

    from contracts.model.application import Application
    from services.runtime.kafka.interfaces import BlockingProducer
    from spark_app.run.low_watermark import LowWatermark
    from spark_app.settings import JobSettings

WITHIN = timedelta(seconds=10)
"""The time for which the `producer` sends one."""
EVERY = timedelta(seconds=5)
"""The pause between two heartbeats."""
IDLE = timedelta(minutes=1)
"""The delay of the watermark of micro-batches. They read nothing but heartbeats while no records come."""
PATIENCE = 2
"""The number of batches in which a partition reaches its end, if its last record is no marker of a transaction."""


class Heartbeat:
    """Writes heartbeats with the low watermark of an application. Those whose keys begin with `prefix` are its own.

    `elapsed` measures the pauses between them: the time of day, `now`, may be set back.
    """

    def __init__(  # noqa: PLR0913, PLR0917  # its dependencies
        self,
        application: Application,
        settings: JobSettings,
        low: LowWatermark,
        producer: BlockingProducer,
        now: Callable[[], datetime] = clock,
        elapsed: Callable[[], float] = monotonic,
    ) -> None:
        self.prefix = b"%s %s " % (HEARTBEAT_KEY, uuid.uuid4().hex.encode())
        self._low = low
        self._topic = sources(application)[-1]
        self._is_live = not application.topics.replay
        self._limit = application.kept_for + application.skew + _delay(application, settings)
        self._waits_s = PATIENCE * max(settings.batch_of(application), EVERY).total_seconds()
        self._producer = producer
        self._now = now
        self._elapsed = elapsed
        # No micro-batch runs without records, so the watermark stays unknown; the first real-time batch ends by itself.
        self._watermark = now() if application.emit is Emit.EVENT else None
        self._written: datetime | None = None
        self._next, self._nudge = elapsed(), elapsed() + self._waits_s

    def after(self, progress: StreamingQueryProgress) -> bool:
        """Write a heartbeat if the watermark of this batch requires one; return whether the broker has it."""
        watermark = progress.eventTime.get("watermark")
        self._watermark = datetime.fromisoformat(watermark) if watermark else None
        return self.beat()

    def beat(self) -> bool:
        """Write a heartbeat if the last watermark requires one; return whether the broker has it.

        A broker that is away is no error here: the query reports it, and a later call writes the heartbeat.
        """
        now, time = self._elapsed(), self._low.time
        if not self._is_live or now < self._next or not self._is_behind():
            return False
        self._next = now + EVERY.total_seconds()
        if time is None or time == self._written:
            return self._pass_markers(now)
        if is_written := self.write(time):
            self._written = time
        return is_written

    def write(self, time: datetime | None = None) -> bool:
        """Write a heartbeat; without a time, it is nothing but a record. Return whether the broker has it."""
        return self._write(self._topic, BY_KEY, b"" if time is None else b"%d" % (time.timestamp() * 1000))

    def _pass_markers(self, now: float) -> bool:
        """Write records to partitions that stay behind; return whether the broker has them.

        The last offset of a partition may be a transaction's marker, which a query in real-time mode passes
        with the next record.
        """
        if now < self._nudge:
            return False
        self._nudge = now + self._waits_s
        written = [self._write(*partition, b"") for partition in self._low.behind()]
        return bool(written) and all(written)

    def _write(self, topic: str, partition: int, time: bytes) -> bool:
        try:
            self._producer.send([Output(topic, self.prefix + time, None, partition)])
        except DeliveryFailedError:
            return False
        return True

    def _is_behind(self) -> bool:
        return self._watermark is None or self._now() - self._watermark > self._limit


def _delay(application: Application, settings: JobSettings) -> timedelta:
    """Return how far the watermark may be behind the clock. A closed window waits for it; else it delays expiry."""
    if application.emit is Emit.CLOSE:
        return EVERY
    return max(IDLE if application.emit is Emit.BATCH else EVERY, settings.batch_of(application))
