"""Heartbeats: records that let an idle application's windows expire.

The watermark follows the records, so without new windows it does not advance, and no window expires or closes. While it
is behind the clock, the driver writes records without value to a topic that the job reads. Their only effect is their
timestamp, the broker's.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from contracts.model.emit import Emit
from contracts.records.record import HEARTBEAT_KEY
from services.runtime.kafka_clients import create_producer
from spark_app.topics import sources

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import KafkaError
    from pyspark.sql.streaming.listener import StreamingQueryProgress

    from contracts.model.application import Application
    from spark_app.settings import JobSettings

FLUSH_S = 10.0
EVERY = timedelta(seconds=5)
"""The pause between two heartbeats."""


class Heartbeat:
    """Writes heartbeats for an idle application. A replay gets none: its time is not the clock's."""

    def __init__(
        self, application: Application, settings: JobSettings, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._topic = sources(application)[-1]
        self._is_live = not application.topics.replay
        self._limit = application.kept_for + application.skew + _delay(application, settings)
        self._producer = create_producer(settings.client(), "heartbeat", {"message.timeout.ms": round(FLUSH_S * 1000)})
        self._now = now
        # No micro-batch runs without records, so the watermark stays unknown; the first real-time batch ends by itself.
        self._watermark = now() if application.emit is Emit.EVENT else None
        self._next = now()

    def after(self, progress: StreamingQueryProgress) -> bool:
        """Write a heartbeat if the watermark of this batch requires one; return whether the broker has it."""
        watermark = progress.eventTime.get("watermark")
        self._watermark = datetime.fromisoformat(watermark) if watermark else None
        return self.beat()

    def beat(self) -> bool:
        """Write a heartbeat if the last watermark requires one; return whether the broker has it.

        A broker that is away is no error here: the query reports it, and a later call writes the heartbeat.
        """
        now = self._now()
        if not self._is_live or now < self._next or not self._is_idle(now):
            return False
        self._next = now + EVERY
        return self.write()

    def write(self) -> bool:
        """Write a heartbeat; return whether the broker has it."""
        errors: list[KafkaError | None] = []
        self._producer.produce(self._topic, key=HEARTBEAT_KEY, on_delivery=lambda error, _: errors.append(error))
        self._producer.flush(FLUSH_S)
        return errors == [None]

    def _is_idle(self, now: datetime) -> bool:
        return self._watermark is None or now - self._watermark > self._limit


def _delay(application: Application, settings: JobSettings) -> timedelta:
    """Return how far behind the clock the watermark of a busy application may be.

    A closed window waits for it. Otherwise it only delays the end of keys, and a busy application's newest window is
    younger than grace and batch.
    """
    if application.emit is Emit.CLOSE:
        return EVERY
    return max(application.state.grace, settings.batch_of(application))
