"""A raw source that is behind: direct events and heartbeats do not expire the windows of what is not decoded yet."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import orjson
import pytest

from contracts.wire import Snapshot, decode_snapshot
from services.runtime.job_progress import JobProgress
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.options import create_producer
from services.tools.topics.__main__ import make
from services.tools.topics.settings import TopicsSettings
from tests.monitored import GRACE, SECOND, application
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import everything, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

PATIENTS = 100


class Ward:
    """The monitors and the nurses of a ward, and its job."""

    def __init__(self, spark: SparkSession, kafka: str, folder: Path, prefix: str) -> None:
        self.app = application(prefix)
        self.kafka = kafka
        make(
            KafkaAdmin({"bootstrap.servers": kafka}, "test"),
            self.app.catalogue(),
            TopicsSettings(application="", kafka=kafka),
        )
        self._producer = create_producer({"bootstrap.servers": kafka}, "test")
        environment = {"STATELOOP_CATCH_UP": "true"}
        # Spark's Python processes import the application by its reference.
        module = folder / f"monitored_{prefix.removesuffix('.')}.py"
        module.write_text(f"from tests.monitored import application\n\napp = application({prefix!r})\n", "utf-8")
        spark.sparkContext.addPyFile(str(module))
        self.job = HostedJob(spark, kafka, folder, f"{module.stem}:app", environment)
        self._notes = 0

    def measure(self) -> None:
        """Send a raw sample of each patient."""
        for number in range(PATIENTS):
            self._producer.produce(self.app.raw[0].topic, b"-", f"patient-{number}")
        assert self._producer.flush(60) == 0

    def note(self) -> None:
        """Send a direct event."""
        self._notes += 1
        event = {"event_id": f"note-{self._notes}", "patient": "nurse", "ts": datetime.now(UTC).isoformat()}
        self._producer.produce(self.app.topics.events, orjson.dumps(event), b"nurse")
        assert self._producer.flush(60) == 0

    def expected(self) -> Counter[tuple[str, datetime]]:
        """The number of samples of each patient in each second, by the raw records that the topic holds."""
        counts: Counter[tuple[str, datetime]] = Counter()
        for message in everything(self.kafka, self.app.raw[0].topic):
            counts[(message.key() or b"").decode(), datetime.fromtimestamp(message.timestamp()[1] // 1000, UTC)] += 1
        return counts

    def decoded(self) -> int:
        """The number of samples that are events. One that was decoded twice, because of a stop, is one event."""
        values = [message.value() or b"" for message in everything(self.kafka, self.app.topics.events)]
        return len({orjson.loads(value)["event_id"] for value in values if b'"patient-' in value})

    def expired(self) -> int:
        """The number of windows that the job has removed."""
        return sum(line["expired"] for line in self.job.lines("batch"))

    def published(self) -> Counter[tuple[str, datetime]]:
        """The number of samples in the newest snapshot of each window."""
        newest: dict[tuple[str, datetime], Snapshot] = {}
        for message in everything(self.kafka, self.app.topics.snapshots):
            snapshot = decode_snapshot(message.value() or b"")
            if snapshot.window not in newest or snapshot.order > newest[snapshot.window].order:
                newest[snapshot.window] = snapshot
        return Counter(
            {window: snapshot.state["samples"] for window, snapshot in newest.items() if window[0] != "nurse"}
        )


@pytest.fixture
def ward(spark: SparkSession, broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> Iterator[Ward]:
    made = Ward(spark, broker.bootstrap, tmp_path, topics_prefix)
    yield made
    if not made.job.ended():
        made.job.stop()


def test_a_sample_that_arrived_in_time_is_not_lost_to_an_outage_beyond_the_grace(ward: Ward) -> None:
    ward.job.start()
    ward.measure()
    ward.note()
    until(lambda: ward.job.ended() or ward.published() == ward.expected(), "the first samples")
    ward.job.stop()
    for _ in range(4):
        ward.measure()
        ward.note()
        time.sleep(SECOND.total_seconds())  # the broker stamps raw records
    time.sleep((GRACE + 2 * SECOND).total_seconds())
    ward.measure()
    ward.note()
    ward.job.start()
    until(lambda: ward.job.ended() or ward.decoded() == 6 * PATIENTS, "all samples to be decoded")
    until(lambda: ward.job.ended() or ward.published() == ward.expected(), "all samples")
    assert not everything(ward.kafka, ward.app.topics.dead_letters)
    until(lambda: ward.job.ended() or ward.expired() >= len(ward.published()), "the windows to expire")
    assert sum(line["late"] for line in ward.job.lines("batch")) == 0
    admin = KafkaAdmin({"bootstrap.servers": ward.kafka}, "progress")
    progress = JobProgress(admin, ward.app.topics.snapshots).read([0, 1]) or {}
    newest = max(start for _, start in ward.published())
    assert [of_partition.time > newest for of_partition in progress.values()] == [True, True], (
        "the snapshots are complete up to there"
    )
