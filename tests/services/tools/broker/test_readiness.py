from __future__ import annotations

import pytest

from services.tools.broker.errors import NotReadyError
from services.tools.broker.readiness import PAUSE_S, wait_until
from tests.clock import Clock


class PausedClock(Clock):
    def pause(self, seconds: float) -> None:
        self.now += seconds


def test_a_true_condition_returns_at_once() -> None:
    clock = PausedClock()
    wait_until(lambda: True, "true", 0, clock=clock, pause=clock.pause)
    assert clock.now == 0


def test_it_returns_as_soon_as_the_condition_is_true() -> None:
    clock = PausedClock()
    wait_until(lambda: clock.now >= 2, "two", 10, clock=clock, pause=clock.pause)
    assert 2 <= clock.now <= 2 + PAUSE_S


def test_the_deadline_is_reported_with_the_condition() -> None:
    clock = PausedClock()
    with pytest.raises(NotReadyError, match="broker ready: not so after 3 s") as late:
        wait_until(lambda: False, "broker ready", 3, clock=clock, pause=clock.pause)
    assert late.value.deadline_s == 3
    assert 3 <= clock.now <= 3 + PAUSE_S
