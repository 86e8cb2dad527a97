from __future__ import annotations

from datetime import timedelta

import pytest

from contracts import Breaker, Policy, RateLimit
from contracts.metrics import Metric
from contracts.metrics import worker as names
from contracts.metrics.counts import Counts
from services.enrichment.handler import PROGRESS
from services.enrichment.service import patience
from services.runtime.worker.health import HealthStatus, Pulse
from tests.clock import Clock

WITHIN = timedelta(seconds=60)


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def counts() -> Counts:
    return Counts(names.CATALOGUE)


@pytest.fixture
def pulse(counts: Counts, clock: Clock) -> Pulse:
    return Pulse(lambda: sum(counts.get(one) for one in PROGRESS), clock)


def stands(pulse: Pulse, work: int) -> str | None:
    return pulse.health(work, is_member=True, is_stopping=False).unhealthy(WITHIN)


def test_a_worker_that_polls_and_has_nothing_to_do_is_healthy(pulse: Pulse, clock: Clock) -> None:
    for _ in range(100):
        clock.now += 10
        pulse.beat(backlog=0)
    assert stands(pulse, 0) is None


def test_a_worker_that_does_not_poll_is_stuck(pulse: Pulse, clock: Clock) -> None:
    pulse.beat(backlog=0)
    clock.now += 60
    assert stands(pulse, 0) is None
    clock.now += 1
    assert stands(pulse, 0) == "the consumer was not polled for 61 s"


def test_a_worker_whose_work_does_not_move_is_stuck(pulse: Pulse, counts: Counts, clock: Clock) -> None:
    counts.add(names.SNAPSHOTS)
    pulse.beat(backlog=3)
    for _ in range(7):
        clock.now += 10
        pulse.beat(backlog=3)
    assert stands(pulse, 3) == "nothing moved for 70 s, with 3 records and requests to do"


@pytest.mark.parametrize("moving", PROGRESS, ids=[one.name for one in PROGRESS])
def test_each_kind_of_progress_counts(pulse: Pulse, counts: Counts, clock: Clock, moving: Metric) -> None:
    for _ in range(10):
        clock.now += 50
        counts.add(moving, *moving.labels)
        pulse.beat(backlog=3)
    assert stands(pulse, 3) is None


def test_work_that_comes_after_a_long_rest_has_its_time(pulse: Pulse, clock: Clock) -> None:
    clock.now += 1000
    pulse.beat(backlog=0)
    clock.now += 50
    pulse.beat(backlog=1)
    assert stands(pulse, 1) is None


def test_an_api_may_be_left_alone_for_as_long_as_its_policy_allows() -> None:
    second, hour = timedelta(seconds=1), timedelta(hours=1)
    quick = Policy(timeout=second, max_backoff=second, max_retry_after=second, breaker=None)
    assert patience(WITHIN, second, ()) == patience(WITHIN, second, [quick]) == WITHIN
    rests = [
        quick.model_copy(update={"breaker": Breaker(open_for=hour)}),
        quick.model_copy(update={"max_retry_after": hour}),
        quick.model_copy(update={"max_backoff": hour}),
        quick.model_copy(update={"timeout": hour}),
        quick.model_copy(update={"rate": RateLimit(calls=2, per=2 * hour)}),
    ]
    assert all(2 * hour < patience(WITHIN, second, [quick, rest]) < 3 * hour for rest in rests)


def test_a_suspended_api_may_be_left_alone_for_the_interval_of_its_trials() -> None:
    second, hour = timedelta(seconds=1), timedelta(hours=1)
    quick = Policy(timeout=second, max_backoff=second, max_retry_after=second)
    assert 2 * hour < patience(WITHIN, hour, [quick]) < 3 * hour


def test_ready_is_a_member_that_does_not_stop() -> None:
    assert HealthStatus(0, 0, 0, is_member=True, is_stopping=False).unready() is None
    assert (
        HealthStatus(0, 0, 0, is_member=False, is_stopping=False).unready()
        == "the consumer group has not taken it in yet"
    )
    assert HealthStatus(0, 0, 0, is_member=True, is_stopping=True).unready() == "it is stopping"


def test_where_there_is_nothing_to_do_nothing_need_move() -> None:
    assert HealthStatus(0.1, 61, 0, is_member=True, is_stopping=False).unhealthy(WITHIN) is None
