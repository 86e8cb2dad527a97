"""Heartbeats: records that let an idle application's windows expire.

The watermark follows the records, so without new windows it stands still, and no state expires. After a batch whose
watermark lies behind the clock, the driver writes one record without value to a topic that the job reads. Its only
effect is its timestamp, the broker's.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

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


class Heartbeat:
    """Writes a heartbeat after each batch of an idle application. A replay gets none: its time is not the clock's."""

    def __init__(
        self, application: Application, settings: JobSettings, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._topic = sources(application)[-1]
        self._is_live = not application.topics.replay
        # A busy application's watermark is later than that: its newest window is younger than grace and batch.
        self._limit = application.kept_for + application.skew + max(application.state.grace, settings.batch)
        self._producer = create_producer(settings.client(), "heartbeat", {"message.timeout.ms": round(FLUSH_S * 1000)})
        self._now = now

    def after(self, progress: StreamingQueryProgress) -> bool:
        """Write a heartbeat if the batch calls for one; return whether the broker has it.

        A broker that is away is no error here: the query reports it, and a later batch calls for the next heartbeat.
        """
        if not self._is_live or not self._is_idle(progress):
            return False
        errors: list[KafkaError | None] = []
        self._producer.produce(self._topic, key=HEARTBEAT_KEY, on_delivery=lambda error, _: errors.append(error))
        self._producer.flush(FLUSH_S)
        return errors == [None]

    def _is_idle(self, progress: StreamingQueryProgress) -> bool:
        watermark = progress.eventTime.get("watermark")
        return watermark is None or self._now() - datetime.fromisoformat(watermark) > self._limit
