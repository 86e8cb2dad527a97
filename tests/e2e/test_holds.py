"""Alerts that hold, while the job or a derive worker is frozen or killed for longer than that."""

from __future__ import annotations

import random
import signal
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.e2e.crossings import active, crossings, opened, plain, put, send_reading, sent
from tests.e2e.gauges import KEYS, limits
from tests.e2e.loop import Loop
from tests.spark_app.running import PATIENCE_S, Job, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.crossings import Crossing, Value
    from tests.forked import Forked
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.full]

APPLICATION, DERIVE = "tests.e2e.gauges:app", "services.derive"
GAUGES = [f"g{number}" for number in range(40)]
HIGH, LOW = 5, 4
HOLD_S, FAULT_S = 20.0, 36.0
HOLD = timedelta(seconds=HOLD_S)
WORKERS = 2
LEAST = 15
"""The number of crossings, at least, that end within the hold, and of those that do not."""


class Gauges:
    """The job and the derive workers as processes."""

    def __init__(self, broker: EmbeddedBroker, prefix: str, folder: Path, *, catches_up: bool = False) -> None:
        self.loop = Loop(broker, prefix, folder, APPLICATION)
        own = {"STATELOOP_BATCH": "PT5S", "STATELOOP_CATCH_UP": str(catches_up)}
        environment = self.loop.environment | own
        self.job = Job(self.loop.bootstrap, folder, APPLICATION, environment)
        self.workers: list[Forked] = []
        self.start = datetime.now(UTC)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run everything, each worker with a partition."""
        put(self.loop, limits, "high", keys=KEYS, high=HIGH, hold=HOLD_S)
        self.job.start()
        try:
            for number in range(WORKERS):
                self.workers.append(self.loop.start(DERIVE, f"derive-{number}"))
            until(lambda: all('"restored"' in log for log in self.logs()), "a partition for each worker")
            self.job.batches()
            yield
        except AssertionError as error:
            for log in self.logs():
                error.add_note(log[-2000:])
            raise
        finally:
            self.job.kill()
            for worker in self.workers:
                worker.kill()
                worker.wait(PATIENCE_S)

    def logs(self) -> list[str]:
        """What the workers have logged."""
        return [self.loop.log(f"derive-{number}").read_text("utf-8") for number in range(len(self.workers))]

    def send(self, gauge: str, value: int, at_s: float = 0) -> None:
        """Send a reading at a time of the monotonic clock, or at once."""
        until(lambda: time.monotonic() >= at_s, "the time of the reading", pause_s=0.02)
        send_reading(self.loop, gauge, self.start, value)

    @contextmanager
    def fault(self, what: str) -> Iterator[None]:
        """Freeze or kill a part for a while."""
        if what == "job killed":
            self.job.kill()
            yield
            self.job.start()
        elif what == "job frozen":
            self.job.signal(signal.SIGSTOP)
            yield
            self.job.signal(signal.SIGCONT)
        else:
            frozen = self.workers[: 1 if what == "worker frozen" else WORKERS]
            for worker in frozen:
                worker.send_signal(signal.SIGSTOP)
            yield
            for worker in frozen:
                worker.send_signal(signal.SIGCONT)

    def run(self, early: list[str], readings: list[tuple[float, str, int]], what: str) -> None:
        """Send the readings before the fault and during it."""
        for gauge in early:
            self.send(gauge, HIGH)
        until(lambda: active(self.loop).keys() == set(early), "pending alerts")
        begin_s = time.monotonic()
        with self.fault(what):
            for at_s, gauge, value in readings:
                self.send(gauge, value, begin_s + at_s)
            until(lambda: time.monotonic() >= begin_s + FAULT_S, "the end of the fault")

    def settle(self) -> int:
        """Wait until the plain loop has the same alerts. Return the number of crossings within the hold."""
        expected, short = plain(sent(self.loop), HIGH, HOLD)

        def are_equal() -> bool:
            alerts = crossings(self.loop)
            false = opened(alerts) - opened(expected)
            assert not false, f"{len(false)} false alerts beside {len(expected)}: {false}"
            return alerts == expected

        until(lambda: self.job.ended() or are_equal(), "the alerts of the plain loop")
        assert not self.job.ended(), self.job.log.read_text(encoding="utf-8")[-3000:]
        return short


def changes(seed: int) -> tuple[list[str], list[tuple[float, str, int]]]:
    """Return the gauges that are high before the fault, and the readings during it, with their times."""
    drawn = random.Random(seed)
    early = [gauge for gauge in GAUGES if drawn.random() < 0.7]
    readings = []
    for gauge in GAUGES:
        is_high, at_s = gauge in early, 0.0
        while (at_s := at_s + lasts_s(drawn, is_high=is_high)) < FAULT_S:
            if drawn.random() < 0.3:  # a reading that changes nothing
                readings.append((at_s - 0.2, gauge, HIGH + 1 if is_high else LOW - 1))
            is_high = not is_high
            readings.append((at_s, gauge, HIGH if is_high else LOW))
    return early, sorted(readings)


def lasts_s(drawn: random.Random, *, is_high: bool) -> float:
    """Return how long a value lasts: a high one for about half of the hold, or longer than the hold."""
    if not is_high:
        return drawn.uniform(0.5, 6)
    return drawn.uniform(1, 0.7 * HOLD_S) if drawn.random() < 0.5 else drawn.uniform(1.1 * HOLD_S, 1.5 * HOLD_S)


@pytest.mark.parametrize("what", ["job frozen", "job killed", "worker frozen", "workers frozen"])
@pytest.mark.parametrize("seed", [1, 2])
def test_alerts_hold_by_the_times_of_the_readings(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path, seed: int, what: str
) -> None:
    gauges, (early, readings) = Gauges(broker, topics_prefix, tmp_path), changes(seed)
    with gauges.running():
        gauges.run(early, readings, what)
        short = gauges.settle()
        gauges.job.batches(2)  # by whose progress what is pending would open
        gauges.settle()
        assert not [alert for alerts in active(gauges.loop).values() for alert in alerts if alert.status == "pending"]
    assert min(short, len(crossings(gauges.loop))) >= LEAST


@pytest.mark.parametrize("seed", [1, 2])
def test_a_catch_up_opens_only_alerts_that_have_held(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path, seed: int
) -> None:
    """It publishes the last state of each gauge, and none before."""
    gauges = Gauges(broker, topics_prefix, tmp_path, catches_up=True)
    with gauges.running():
        gauges.run(*changes(seed), "job killed")
        readings = sent(gauges.loop)
        last = {reading.device: reading.value for reading in readings}
        high = {gauge for gauge, value in last.items() if value >= HIGH}
        until(lambda: gauges.job.ended() or open_ones(gauges.loop) == high, "an alert of each high gauge")
        gauges.job.batches(2)
        assert open_ones(gauges.loop) == high
        assert gauges.job.lines("catching_up")
    false = [crossing for crossing in crossings(gauges.loop) if not has_held(crossing, readings)]
    assert not false, f"{len(false)} of {len(crossings(gauges.loop))}: {false}"


def open_ones(loop: Loop) -> set[str]:
    """The gauges with an open alert."""
    return {gauge for gauge, alerts in active(loop).items() if any(alert.status == "open" for alert in alerts)}


def has_held(alert: Crossing, readings: list[Value]) -> bool:
    """Return whether the gauge was high for all of the hold before the alert opened."""
    begin = alert.opened_at - HOLD
    own = [reading for reading in readings if reading.device == alert.device]
    during = [reading.value for reading in own if begin <= reading.at < alert.opened_at]
    return bool(during) and min(during) >= HIGH
