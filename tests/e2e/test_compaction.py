"""Alerts over a topic of snapshots that is compacted while the derive worker is down or frozen."""

from __future__ import annotations

import random
import signal
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import pytest

from contracts.wire import decode_snapshot
from tests.e2e.crossings import crossings, put, send_reading, sent
from tests.e2e.gauges import KEYS, app, limits
from tests.e2e.loop import Loop
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import PATIENCE_S, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.e2e.crossings import Crossing, Value
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.full]

APPLICATION, DERIVE = "tests.e2e.gauges:app", "services.derive"
GAUGES = [f"g{number}" for number in range(24)]
ENDING = GAUGES[::2]
"""The gauges whose window ends during the test."""
ENDS = timedelta(seconds=90)
HIGH, LOW = 5, 4
MORE = 6
"""The number of readings of each gauge while the worker is away."""
EXPIRES = app.kept_for + app.skew


class Gauges:
    """The job, and a derive worker that is away for some time."""

    def __init__(self, spark: SparkSession, broker: EmbeddedBroker, prefix: str, folder: Path) -> None:
        self.loop = Loop(broker, prefix, folder, APPLICATION)
        self.loop.compact("snapshots")
        environment = self.loop.environment | {"STATELOOP_BATCH": "PT5S"}
        self.job = HostedJob(spark, self.loop.bootstrap, folder, APPLICATION, environment)
        self.starts: dict[str, datetime] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the job and the worker."""
        put(self.loop, limits, "high", keys=KEYS, high=HIGH)
        self.job.start()
        self.worker = self.loop.start(DERIVE)
        try:
            self.job.batches()
            now = datetime.now(UTC)
            self.starts |= {gauge: now + ENDS - EXPIRES if gauge in ENDING else now for gauge in GAUGES}
            yield
        except AssertionError as error:
            error.add_note(self.loop.log(DERIVE).read_text("utf-8")[-3000:])
            raise
        finally:
            self.job.stop()
            self.worker.kill()
            self.worker.wait(PATIENCE_S)

    @contextmanager
    def away(self, *, is_killed: bool) -> Iterator[None]:
        """Kill or freeze the worker for a while."""
        self.worker.send_signal(signal.SIGKILL if is_killed else signal.SIGSTOP)
        yield
        if is_killed:
            self.worker = self.loop.start(DERIVE)
        else:
            self.worker.send_signal(signal.SIGCONT)

    def send(self, gauge: str, value: int) -> None:
        """Send a reading."""
        send_reading(self.loop, gauge, self.starts[gauge], value)

    def are_published(self) -> bool:
        """Return whether the last snapshot of each gauge has all its readings."""
        assert not self.job.ended(), self.job.log.read_text(encoding="utf-8")[-3000:]
        readings = [reading.device for reading in sent(self.loop)]
        snapshots = [decode_snapshot(message.value() or b"") for message in self.loop.records("snapshots")]
        snapshots.sort(key=lambda snapshot: snapshot.version)
        versions = {snapshot.device_id: snapshot.version for snapshot in snapshots}
        return versions == {gauge: readings.count(gauge) for gauge in GAUGES}


class Course(NamedTuple):
    """The values of a gauge: before the worker is away, and from some reading on while it is."""

    before: int
    after: int
    changes_at: int


def courses(seed: int) -> dict[str, Course]:
    """Draw the values of each gauge: it crosses the limit, or comes back, once at most while the worker is away."""
    drawn = random.Random(seed)
    values = (HIGH, HIGH, LOW)
    return {gauge: Course(drawn.choice(values), drawn.choice(values), drawn.randrange(MORE)) for gauge in GAUGES}


def check(gauge: str, course: Course, readings: list[Value], alerts: list[Crossing], end: datetime) -> None:
    """Compare with the plain evaluation. What compaction has removed may have been read or not."""
    if HIGH not in {course.before, course.after}:
        assert not alerts, gauge
        return
    (alert,) = alerts
    own = [reading for reading in readings if reading.device == gauge]
    first = next(number for number, reading in enumerate(own) if reading.value == HIGH)
    assert alert.version - 1 in (range(first, len(own)) if first else [0]), gauge
    assert alert.opened_at == own[alert.version - 1].at, gauge
    if course.after == LOW:
        assert alert.closed_by == "condition", gauge
        assert alert.closed_at in {reading.at for reading in own[-MORE:] if reading.value == LOW}, gauge
    elif gauge in ENDING:
        assert alert.closed_by == "expired", gauge
        assert alert.closed_at, gauge
        assert alert.closed_at > end, gauge
    else:
        assert alert.closed_at is None, gauge


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "frozen"])
@pytest.mark.parametrize("seed", [1, 2])
def test_each_crossing_has_one_alert_until_its_window_is_over(  # noqa: PLR0913  # fixtures
    spark: SparkSession, broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path, seed: int, *, is_killed: bool
) -> None:
    gauges, drawn = Gauges(spark, broker, topics_prefix, tmp_path), courses(seed)
    with gauges.running():
        for gauge, course in drawn.items():
            gauges.send(gauge, course.before)
        high = {gauge for gauge, course in drawn.items() if course.before == HIGH}
        until(lambda: {alert.device for alert in crossings(gauges.loop)} == high, "the first alerts")
        until(lambda: not gauges.loop.lag(DERIVE, "snapshots"), "a commit of all snapshots")
        with gauges.away(is_killed=is_killed):
            for number in range(MORE):
                for gauge, course in drawn.items():
                    gauges.send(gauge, course.before if number < course.changes_at else course.after)
            until(gauges.are_published, "the snapshots of all readings")
            gauges.loop.compacted("snapshots", len(GAUGES))
            gauges.job.batches(2)  # by whose progress windows expire
        until(lambda: not gauges.loop.lag(DERIVE, "snapshots"), "a worker that has read all")
        ending = {gauge for gauge in ENDING if drawn[gauge].after == HIGH}
        until(
            lambda: ending <= {alert.device for alert in crossings(gauges.loop) if alert.closed_at},
            "the end of the windows",
        )
        gauges.job.batches(2)
        alerts, readings = crossings(gauges.loop), sent(gauges.loop)
    for gauge, course in drawn.items():
        own = [alert for alert in alerts if alert.device == gauge]
        check(gauge, course, readings, own, gauges.starts[gauge] + EXPIRES)
    assert len(alerts) > len(GAUGES) // 2
