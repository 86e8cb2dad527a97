"""Raw records of a real topic through the decoder and the state, with a job that is stopped in a batch."""

from __future__ import annotations

import struct
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import orjson
import pytest

from contracts.records.record import Reason
from contracts.types.origin import PLACE
from contracts.wire import DeadLetter, Snapshot, decode_snapshot
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.options import create_producer
from services.tools.cli.__main__ import main as stateloop
from services.tools.topics.__main__ import make
from services.tools.topics.settings import TopicsSettings
from tests.spark_app.batches import SHORT
from tests.spark_app.hosted import HostedJob, anew
from tests.spark_app.running import everything, until
from tests.waveforms import prefixed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

PATIENTS = ("ann", "bob")
SECOND, WINDOW = timedelta(seconds=1), timedelta(seconds=10)


class Ward:
    """The monitors of some patients, and the job that decodes what they send."""

    def __init__(self, spark: SparkSession, kafka: str, folder: Path, prefix: str) -> None:
        app = prefixed(prefix)
        self.kafka, self.topics = kafka, app.topics
        self.packed, self.text = app.raw
        make(
            KafkaAdmin({"bootstrap.servers": kafka}, "test"),
            app.catalogue(),
            TopicsSettings(application="", kafka=kafka),
        )
        self._producer = create_producer({"bootstrap.servers": kafka}, "test")
        self._decoders = spark.sparkContext.environment
        self.job = HostedJob(spark, kafka, folder, "tests.waveforms:app", SHORT)
        self.configure("WAVEFORMS_PREFIX", prefix)
        self.start = datetime.fromtimestamp(int(time.time()) // 10 * 10 - 60, UTC)
        self.sent: dict[tuple[str, datetime], list[float | None]] = {}

    def send(self, seconds: range, *, lost: int = -1) -> None:
        """Send a chunk of each patient for each second but the lost one, the later ones first, and each twice."""
        for second in reversed(seconds):
            for number, patient in enumerate(PATIENTS):
                if second == lost:
                    continue
                ts = self.start + second * SECOND
                samples = [1000 * number + 4 * second + sample for sample in range(4)]
                value = struct.pack(
                    "<q8h",
                    round(ts.timestamp() * 1000),
                    *(sample for both in zip(samples, samples, strict=True) for sample in both),
                )
                for _ in range(2):
                    self._produce(self.packed.topic, patient, value, beds=str(number))
                place = second % 10 * 4
                series = self.sent.setdefault((patient, self.start + second // 10 * WINDOW), [None] * 40)
                series[place : place + 4] = [sample / 2 for sample in samples]
        assert self._producer.flush(60) == 0

    def send_broken(self) -> None:
        """Send records that cannot be decoded, one for each reason."""
        at = str(round((self.start + 3 * WINDOW).timestamp() * 1000))
        self._produce(self.packed.topic, "ann", b"short", beds="1")
        self._produce(self.packed.topic, "ann", bytes(300 * 1024), beds="1")
        self._produce(self.text.topic, "cat", b"bug", at=at)
        self._produce(self.text.topic, "ann", b"1,x", at=at)
        assert self._producer.flush(60) == 0

    def _produce(self, topic: str, key: str, value: bytes, **headers: str) -> None:
        self._producer.produce(topic, value, key, headers={name: header.encode() for name, header in headers.items()})

    def configure(self, name: str, value: str) -> None:
        """Set an environment variable of the job and of Spark's Python processes, which decode, from its next start."""
        self.job.environment[name] = self._decoders[name] = value

    def redrive(self) -> None:
        """Send all dead letters into the loop again."""
        with anew(self.job.environment):
            assert stateloop(["redrive", "back"]) == 0

    def newest(self) -> dict[tuple[str, datetime], Snapshot]:
        """The newest snapshot of each window that the job has published."""
        newest: dict[tuple[str, datetime], Snapshot] = {}
        for message in everything(self.kafka, self.topics.snapshots):
            snapshot = decode_snapshot(message.value() or b"")
            if snapshot.window not in newest or snapshot.order > newest[snapshot.window].order:
                newest[snapshot.window] = snapshot
        return newest

    def series(self) -> dict[tuple[str, datetime], list[Any]]:
        """The newest series of each window."""
        return {window: snapshot.state["ecg"] for window, snapshot in self.newest().items()}

    def dead_letters(self) -> dict[str, DeadLetter]:
        """The dead letters of raw records, by the places of these."""
        values = [message.value() or b"" for message in everything(self.kafka, self.topics.dead_letters)]
        letters = [DeadLetter.model_validate_json(value) for value in values]
        return {f"{letter.topic}/{letter.partition}/{letter.offset}": letter for letter in letters}


@pytest.fixture
def ward(spark: SparkSession, broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> Iterator[Ward]:
    with patch.dict(spark.sparkContext.environment):
        made = Ward(spark, broker.bootstrap, tmp_path, topics_prefix)
        yield made
        if not made.job.ended():
            made.job.stop()


def test_every_sample_is_in_its_place_after_a_stop_and_a_fix_of_the_decoder(ward: Ward) -> None:
    ward.job.start()
    ward.send(range(20), lost=7)
    until(lambda: ward.job.ended() or len(ward.series()) == 4, "the first windows")
    ward.send_broken()
    until(lambda: ward.job.ended() or len(ward.dead_letters()) == 4, "the dead letters")
    ward.send(range(20, 30))
    ward.job.stop()  # between what was decoded, and what is committed
    ward.send(range(30, 40), lost=39)
    (bug,) = (place for place, letter in ward.dead_letters().items() if letter.head == "bug")
    for _ in range(2):
        ward.redrive()
    ward.configure("WAVEFORMS_FIXED", "1")
    ward.job.start()
    cat = ("cat", ward.start + 3 * WINDOW)
    expected = ward.sent | {window: series[:36] for window, series in ward.sent.items() if series[36] is None}
    until(lambda: ward.job.ended() or ward.series() == expected | {cat: [1.0]}, "all samples")
    until(lambda: ward.job.ended() or len(ward.dead_letters()) == 4 + 2 * 3, "the dead letters of all copies")
    assert ward.newest()[cat].state["chunks"] == 1
    assert expected["ann", ward.start][27:33] == [13.5, None, None, None, None, 16.0]

    events = [
        message for message in everything(ward.kafka, ward.topics.events) if message.value() is not None
    ]  # no heartbeats
    raw = everything(ward.kafka, ward.packed.topic)
    stamps = {f"{message.topic()}/{message.partition()}/{message.offset()}": message.timestamp()[1] for message in raw}
    text = everything(ward.kafka, ward.text.topic)
    copies = [message.timestamp()[1] for message in text if dict(message.headers() or ()).get(PLACE) == bug.encode()]
    decoded = {orjson.loads(message.value() or b"")["event_id"]: message.timestamp()[1] for message in events}
    assert len(copies) == 2
    assert decoded.pop(bug) == max(copies)
    assert decoded == {place: stamps[place] for place in stamps.keys() - ward.dead_letters().keys()}
    reasons = sorted(letter.reason for letter in ward.dead_letters().values())
    assert reasons == sorted([*[Reason.OVERSIZED] * 3, *[Reason.UNDECODABLE] * 7])
    assert {letter.topic for letter in ward.dead_letters().values()} == {ward.packed.topic, ward.text.topic}

    records = "records_total", ward.packed.name, ward.packed.topic
    until(lambda: ward.job.ended() or records in ward.job.figures(), "the report of the batch, at its end")
    figures = ward.job.figures()
    assert figures["gave_up", ward.packed.name] == 0
    assert figures[records] > 0
    events_written, refused, written = (
        figures[f"{name}_total", ward.packed.name] for name in ("decoded", "refused", "written")
    )
    assert (events_written > 0, written) == (True, events_written + refused)
    assert ward.job.stop() == 0
