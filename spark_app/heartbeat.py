"""Heartbeats: records that let an idle application's windows expire.

The watermark follows the records, so without new windows it stands still, and no state expires. After a batch whose
watermark lies behind the clock, the driver writes one record without value to a topic that the job reads. Its only
effect is its timestamp, the broker's.
"""

from collections.abc import Callable
from datetime import UTC, datetime

from confluent_kafka import KafkaError, Producer
from pyspark.sql.streaming.listener import StreamingQueryProgress

from contracts.model.application import Application
from contracts.records.record import HEARTBEAT_KEY
from spark_app.settings import JobSettings
from spark_app.topics import sources

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
        self._producer = Producer(settings.client() | {"log_level": 0, "message.timeout.ms": round(FLUSH_S * 1000)})
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
