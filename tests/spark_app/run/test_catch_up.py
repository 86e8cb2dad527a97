"""The job on a backlog: it loses nothing, publishes no half-built state, and goes live where it has ended."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from contracts.records.fold import present
from contracts.records.record import Record, timestamp_ms
from contracts.wire import Snapshot, decode_snapshot
from contracts.wire.partition import partition
from tests import everything
from tests.everything import NOW, event_record
from tests.same import assert_same
from tests.spark_app.batches import SHORT, committed
from tests.spark_app.folding import folded
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import PARTITIONS, Job, Topics, until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
OUTAGE = timedelta(hours=6)
SLOW, QUICK = 50_000, 500
"""Events of the two partitions: real-time mode reads one in a moment, and the other in many batches."""


@pytest.fixture
def topics(broker: EmbeddedBroker, topics_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Topics:
    """Topics of this test, whose records carry the times that the test gives them."""
    monkeypatch.setenv("EVERYTHING_PREFIX", topics_prefix)
    return Topics(broker.bootstrap, everything.application())


def hosted(spark: SparkSession, topics: Topics, folder: Path) -> HostedJob:
    environment = SHORT | {"STATELOOP_CATCH_UP": "true"}
    return HostedJob(spark, topics.kafka, folder, everything.application(everything.Little), environment)


def published(topics: Topics, least: int) -> list[Snapshot]:
    return [decode_snapshot(message.value() or b"") for message in topics.read(topics.names.snapshots, least)]


def test_a_new_checkpoint_publishes_each_window_once_and_whole_and_then_goes_live(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    events, answers = everything.random_stream(1, devices=40, events=600, answers=100)
    fold, _ = folded(topics, events, answers, everything.little)
    running = hosted(spark, topics, tmp_path).start()
    try:
        snapshots = published(topics, len(fold.windows))
        until(lambda: running.lines("batch"), "the batch that caught up")
        assert len(snapshots) == len(fold.windows)
        for snapshot in snapshots:
            last = present(everything.little, snapshot.window, fold.windows[snapshot.window], running.epoch())
            assert_same(snapshot.model_dump(mode="json"), last.model_dump(mode="json"))
        assert [line["records"] for line in running.lines("catching_up")] == [len(events) + len(answers)]
        device, before = snapshots[0].device_id, snapshots[0].version
        more = {"device_id": device, "event_id": "new", "first_seen": snapshots[0].first_seen, "ts": NOW}
        topics.send(topics.names.events, [event_record(more), event_record(more | {"event_id": "newer"})])
        live = published(topics, len(snapshots) + 2)[len(snapshots) :]
    finally:
        running.stop()
    assert [
        (snapshot.device_id, snapshot.version) for snapshot in sorted(live, key=lambda snapshot: snapshot.version)
    ] == [
        (device, before + 1),
        (device, before + 2),
    ]


def test_after_an_outage_a_slow_partition_loses_no_window(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    """Without the catch-up each record has a snapshot, and the quick partition may expire windows of the slow one."""
    start = NOW - OUTAGE
    running = hosted(spark, topics, tmp_path).start()
    try:
        topics.send(topics.names.events, [_event("before", 0, start)])
        committed(running, 1)
        running.stop()
        slow, quick = _devices(0, 1500), _devices(1, 5)
        backlog = [_event(slow[n % len(slow)], n, start + OUTAGE * n / SLOW) for n in range(SLOW)]
        backlog += [_event(quick[n % len(quick)], n, NOW) for n in range(QUICK)]
        topics.send(topics.names.events, backlog)
        running.start()
        windows = {(record.key, record.value and orjson.loads(record.value)["first_seen"]) for record in backlog}
        snapshots = published(topics, 1 + len(windows))
        committed(running, 1 + len(backlog))
        assert {snapshot.device_id for snapshot in snapshots} == {"before", *slow, *quick}
        assert len(snapshots) == 1 + len(windows)
        assert sum(snapshot.version for snapshot in snapshots) == 1 + len(backlog)
        assert sum(batch["late"] for batch in running.lines("batch")) == 0
    finally:
        running.stop()


def _devices(number: int, count: int) -> list[str]:
    """Names of devices in this partition."""
    names = (f"d{n}" for n in range(100 * count))
    return [name for name in names if partition(name.encode(), PARTITIONS) == number][:count]


def _event(device: str, number: int, time: datetime) -> Record:
    """An event of the window that begins at the hour before its time."""
    first_seen = time.replace(minute=0, second=0, microsecond=0)
    event: dict[str, Any] = {"device_id": device, "event_id": str(number), "first_seen": first_seen, "ts": time}
    return Record("", 0, 0, timestamp_ms(time), device.encode(), orjson.dumps(event))


def test_a_job_that_is_killed_in_its_first_batch_goes_on(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    events, answers = everything.random_stream(1, devices=10, events=100, answers=10)
    fold, new = folded(topics, events, answers, everything.little)
    environment = {"EVERYTHING_PREFIX": topics.names.prefix, "STATELOOP_BATCH": "PT1H"}
    killed = Job(topics.kafka, tmp_path, "tests.everything:little", environment).start()
    published(topics, new)
    assert not killed.lines("batch")
    killed.kill()
    running = hosted(spark, topics, tmp_path).start()
    try:
        until(lambda: running.lines("batch") or running.lines("failed"), "a commit")
        assert not running.lines("failed")
        newest = {snapshot.window: snapshot for snapshot in published(topics, new + len(fold.windows))}
        for window, snapshot in newest.items():
            last = present(everything.little, window, fold.windows[window], running.epoch())
            assert_same(snapshot.model_dump(mode="json"), last.model_dump(mode="json"))
    finally:
        running.stop()
