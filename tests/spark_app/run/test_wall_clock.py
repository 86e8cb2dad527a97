"""A system clock that is set back, and others."""

from __future__ import annotations

import pytest

from spark_app.errors import ClockSetBackError
from spark_app.run.wall_clock import TOLERANCE_S, WallClock
from tests.clock import Clock

DAY_S = 86_400.0


def test_only_a_clock_that_is_set_back_is_noticed() -> None:
    monotonic, system = Clock(), Clock(20_000 * DAY_S)
    wall_clock = WallClock(system, monotonic)
    for passed, step in ((10.0, 0.0), (10.0, 3600.0), (1.0, -TOLERANCE_S), (DAY_S, 0.0)):
        monotonic.now += passed
        system.now += passed + step
        wall_clock.check()
    system.now -= 3600.0
    with pytest.raises(ClockSetBackError, match="set back by 3600 s"):
        wall_clock.check()
    wall_clock.check()
