from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.tools.launcher.restarts import RestartPolicy, Restarts

POLICY = RestartPolicy(most=3, within_s=60, first_pause_s=0.5, longest_pause_s=1.5)


def test_the_pause_doubles_up_to_the_longest() -> None:
    restarts = Restarts(POLICY)
    assert [restarts.died(now) for now in (0, 1, 2)] == [0.5, 1.0, 1.5]


def test_one_death_too_many_within_the_time_is_the_end() -> None:
    restarts = Restarts(POLICY)
    assert [restarts.died(now) is None for now in (0, 1, 2, 59)] == [False, False, False, True]


def test_deaths_of_long_ago_do_not_count() -> None:
    restarts = Restarts(POLICY)
    assert [restarts.died(now) for now in (0, 1, 2, 61.5)] == [0.5, 1.0, 1.5, 1.0]


@given(st.lists(st.floats(min_value=20.1, max_value=1e6), max_size=50))
def test_a_process_that_dies_rarely_is_always_restarted(gaps: list[float]) -> None:
    restarts, now = Restarts(POLICY), 0.0
    for gap in gaps:
        now += gap
        assert restarts.died(now) is not None
