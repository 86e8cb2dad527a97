"""Windows that are over when the job reads their events in one catch-up: alerts and a derived state see all of them."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from contracts.records.decode import Decoder
from contracts.records.fold import Fold, present
from contracts.records.record import RecordError
from contracts.wire import DerivedRecord, decode_snapshot
from services.runtime.kafka.options import record_of
from tests.e2e import gauges
from tests.e2e.crossings import Crossing, crossings, opened, put, send_reading
from tests.e2e.gauges import KEYS, SECOND, Span, factors, limits
from tests.e2e.loop import Loop
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from contracts.wire import Snapshot
    from tests.services.tools.broker.embedded import EmbeddedBroker

    Window = tuple[str, datetime]

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.full]

DERIVE = "services.derive"
GAUGES = [f"g{number}" for number in range(12)]
HIGH, TIMES = 7, 3
BACKLOG_S = 18.0
LEAST = 7 * len(GAUGES)
"""The number of windows, at least."""
EXPIRES = Span.lifetime + Span.grace + SECOND
CATCHING_UP = {"STATELOOP_BATCH": "PT3S", "STATELOOP_CATCH_UP": "true"}
FEW = {"max_poll_records": "50"}


def send(loop: Loop, seed: int) -> None:
    """Send readings of some seconds: each gauge has several in each window."""
    drawn, end_s = random.Random(seed), time.monotonic() + BACKLOG_S
    while time.monotonic() < end_s:
        for gauge in drawn.choices(GAUGES, k=4):
            send_reading(loop, gauge, datetime.now(UTC), 0)
        time.sleep(drawn.uniform(0.05, 0.2))  # the time of the readings


def folded(loop: Loop, application: str) -> dict[Window, Snapshot]:
    """The windows of the readings as the broker has stamped them, by the plain fold."""
    app = getattr(gauges, application)
    decoder, fold = Decoder(app), Fold(app)
    for message in loop.records("events"):
        try:
            for delta in decoder.event(record_of(message)):
                fold.add(delta)
        except RecordError:  # it is late
            continue
    return {window: present(app, window, partial) for window, partial in fold.windows.items()}


def published(loop: Loop) -> dict[Window, Snapshot]:
    """The newest snapshot of each window, without the epoch."""
    snapshots = [decode_snapshot(message.value() or b"") for message in loop.records("snapshots")]
    newest = {snapshot.window: snapshot for snapshot in sorted(snapshots, key=lambda snapshot: snapshot.version)}
    return {window: snapshot.model_copy(update={"epoch": 0}) for window, snapshot in newest.items()}


def weights(loop: Loop) -> dict[Window, int]:
    """The last derived record of each window."""
    records = [DerivedRecord.model_validate_json(message.value() or b"") for message in loop.records("weights")]
    return {(record.key, record.first_seen): record.value["weight"] for record in records}


@pytest.mark.parametrize("application", ["spans_event", "spans_close"])
@pytest.mark.parametrize(("seed", "is_late"), [(1, False), (2, True)], ids=["worker waits", "worker comes later"])
def test_all_windows_of_a_catch_up_are_evaluated(  # noqa: PLR0913, PLR0917  # fixtures
    spark: SparkSession,
    broker: EmbeddedBroker,
    topics_prefix: str,
    tmp_path: Path,
    application: str,
    seed: int,
    *,
    is_late: bool,
) -> None:
    loop = Loop(broker, topics_prefix, tmp_path, f"tests.e2e.gauges:{application}")
    put(loop, limits, "high", keys=KEYS, high=HIGH)
    put(loop, factors, "all", times=TIMES)
    worker = None if is_late else loop.start(DERIVE, **FEW)
    job = HostedJob(spark, loop.bootstrap, tmp_path, f"tests.e2e.gauges:{application}", loop.environment | CATCHING_UP)
    try:
        job.start()
        for gauge in GAUGES:
            send_reading(loop, gauge, datetime.now(UTC), 0)
        job.batches(2)
        job.stop()
        before = len(job.lines("catching_up"))
        send(loop, seed)
        windows = folded(loop, application)
        job.start()
        until(lambda: job.ended() or published(loop) == windows, "the windows of the fold")
        assert len(job.lines("catching_up")) > before
        worker = worker or loop.start(DERIVE, **FEW)
        expected = {
            Crossing(*window, snapshot.version, snapshot.as_of)
            for window, snapshot in windows.items()
            if snapshot.state["readings"] >= HIGH
        }
        until(lambda: opened(crossings(loop)) == expected, "an alert of each high window")
        heavy = {window: TIMES * snapshot.state["readings"] for window, snapshot in windows.items()}
        until(lambda: weights(loop) == heavy, "the weight of each window")
        until(lambda: all(alert.closed_at for alert in crossings(loop)), "the end of the alerts")
        alerts = crossings(loop)
    finally:
        job.stop()
        if worker is not None:
            worker.kill()
    assert opened(alerts) == expected
    assert {alert.closed_by for alert in alerts} == {"expired"}
    assert all(alert.closed_at and alert.closed_at > alert.first_seen + EXPIRES for alert in alerts)
    assert LEAST <= len(windows) <= 3 * len(expected)
