"""From observations to responses: rates, restarts, unreachable processes, and the points of the history."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from contracts.api.loop import ApiFailure
from contracts.metrics import worker
from examples.flights.application import app
from examples.weather.application import notifying
from services.query.console.graph import graph
from services.query.console.metrics_history import MetricsHistory
from services.query.console.observation import Span
from services.query.console.scrape import parse_result
from tests.services.query.console.observations import (
    BEGIN,
    JOB,
    WORKERS,
    away,
    job_part,
    observation,
    owner,
    worker_part,
)

if TYPE_CHECKING:
    from contracts import Application
    from contracts.api.loop import LoopResponse
    from services.query.console.observation import Observation


def response(*observations: Observation, application: Application = app) -> LoopResponse:
    history = MetricsHistory(application, 2.0)
    for one in observations:
        history.record(one)
    found = history.answer(0)
    assert found is not None
    return found


def test_there_is_no_response_before_the_first_observation() -> None:
    assert MetricsHistory(app, 2.0).answer(None) is None


def test_topics_have_their_end_offsets_and_rates() -> None:
    found = response(
        observation(0, end_offsets={"events": {0: 10, 1: 5}}), observation(2, end_offsets={"events": {0: 20, 1: 15}})
    )
    assert (found.topics["events"].end, found.topics["events"].rate) == (35, 10.0)
    assert found.topics["events"].partitions == 2
    assert found.topics["dead_letters"].rate == 0


def test_an_unreachable_broker_is_reported() -> None:
    broken = observation(2)
    found = response(observation(0), type(broken)(broken.at, broken.clock, broken.parts, None, broken.states))
    assert not found.kafka
    assert found.topics["events"].rate is None
    assert found.health.reasons[0].kind == "kafka_unreachable"


def test_calls_of_all_workers_are_added_up() -> None:
    found = response(
        observation(0, worker_part(WORKERS[0], result=10), worker_part(WORKERS[1], result=100)),
        observation(2, worker_part(WORKERS[0], result=20, absence=2), worker_part(WORKERS[1], result=104)),
    )
    (api,) = found.apis
    assert api.calls == {"result": 7.0, "absence": 1.0}
    assert [one.calls for one in found.workers] == [6.0, 2.0]
    assert found.history[-1].calls == 8.0


def test_a_restarted_process_has_counted_from_zero() -> None:
    found = response(observation(0, worker_part(result=1000)), observation(2, worker_part(result=6)))
    assert found.apis[0].calls["result"] == 3.0


def test_a_process_that_is_back_causes_no_burst() -> None:
    found = response(observation(0, away(WORKERS[0])), observation(2, worker_part(result=1000)))
    assert found.apis[0].calls == {}
    assert found.workers[0].calls is None


def test_latency_is_that_of_recent_calls() -> None:
    slow, fast = [5.0] * 100, [0.02] * 100
    found = response(
        observation(0, worker_part(seconds={worker.CALL_SECONDS: {"reference": slow}})),
        observation(2, worker_part(seconds={worker.CALL_SECONDS: {"reference": slow + fast}})),
    )
    assert found.apis[0].p99_ms == pytest.approx(25, abs=1)
    assert found.history[-1].p50_ms == pytest.approx(17.5, abs=1)


def test_an_api_has_the_worst_breaker_state() -> None:
    found = response(observation(0, worker_part(WORKERS[0], breaker=0), worker_part(WORKERS[1], breaker=2, queued=7)))
    assert (found.apis[0].breaker, found.apis[0].queued) == ("open", 7)


@pytest.mark.parametrize("enrichments", [0.0, 1.0, 2.0])
def test_a_webhook_that_is_down_is_an_api_that_is_down(enrichments: float) -> None:
    """A process has a breaker for each webhook, and one for the enrichments that call the same API."""
    labels = 'application="weather",api="reference"'
    text = f"""{worker.BREAKER.exported}{{{labels}}} {enrichments}
{worker.BREAKER.exported}{{{labels},alerts="temperature_changes"}} 2.0
{worker.BREAKER_FAILURES.exported}{{{labels},alerts="temperature_changes",reason="timed out"}} 3.0
{worker.BREAKER_FAILED_AT.exported}{{{labels}}} 900.0
{worker.BREAKER_FAILED_AT.exported}{{{labels},alerts="temperature_changes"}} 1060.0
"""
    found = response(observation(0, job_part(), parse_result(WORKERS[0], text)), application=notifying)
    (api,) = found.apis
    assert (api.name, api.breaker) == ("reference", "open")
    assert api.failure == ApiFailure(reason="timed out", count=3, at=datetime.fromtimestamp(1060, UTC))
    assert "breaker_open" in {reason.kind for reason in found.health.reasons}


def test_an_api_that_is_down_has_the_latest_reason_of_all_workers_with_its_count_and_time() -> None:
    old, new = ("connection refused", 90.0, 1000.0), ("the response is not JSON", 57.0, 1060.0)
    parts = (worker_part(WORKERS[0], None, old, breaker=2), worker_part(WORKERS[1], None, new, breaker=1))
    found = response(observation(0, *parts))
    assert found.apis[0].failure == ApiFailure(reason=new[0], count=57, at=datetime.fromtimestamp(1060, UTC))
    assert "57 calls that failed: the response is not JSON, at 00:17:40 UTC" in found.health.reasons[0].message
    both = (worker_part(one, None, new, breaker=2) for one in WORKERS)
    failure = response(observation(0, *both)).apis[0].failure
    assert failure is not None
    assert failure.count == 114


def test_an_api_of_unreachable_workers_has_unknown_health() -> None:
    found = response(observation(0, away(WORKERS[0]), job_part()))
    assert (found.apis[0].breaker, found.apis[0].failure) == (None, None)


def test_the_cache_hit_ratio_is_reported() -> None:
    found = response(observation(0, worker_part(hit=0, miss=10)), observation(2, worker_part(hit=30, miss=20)))
    assert found.apis[0].cached == 0.75


def test_a_job_has_the_metrics_of_its_last_batch() -> None:
    found = response(
        observation(0, job_part(events=10)), observation(2, job_part(events=30, lag=4, watermark=1357000000.0))
    )
    (job,) = found.job
    assert (job.read, job.lag, job.keys, job.up) == (10.0, 4, 40, True)
    assert job.committed_s == 2.0


def test_a_job_has_no_batch_metrics_before_its_first_batch() -> None:
    (job,) = response(observation(0, job_part(committed_at=0.0, batch_s=0.0, starts=1))).job
    assert (job.batch_s, job.pause_s, job.committed_s, job.starting) == (None, None, None, False)
    assert response(observation(0, job_part(starts=0))).job[0].starting


def test_an_unreachable_process_has_its_error_and_duration() -> None:
    found = response(observation(0, job_part()), observation(4, away(JOB)), observation(8, away(JOB, "refused")))
    assert (found.job[0].up, found.job[0].error, found.job[0].unreachable_s) == (False, "refused", 8.0)
    assert found.job[0].lag is None


def test_failures_are_counted_within_the_history() -> None:
    observations = [
        observation(0, job_part(failures=7)),
        observation(2, job_part(failures=9)),
        observation(4, job_part(failures=1)),
    ]
    assert response(*observations).recent_failures == 2
    assert response(observation(0, job_part(failures=7))).recent_failures == 0


def test_a_watermark_is_unchanged_only_while_events_arrive() -> None:
    def observations(events: float, watermark: float) -> list[Observation]:
        return [
            observation(at, job_part(watermark=1e9 + watermark * at), end_offsets={"events": {0: round(events * at)}})
            for at in range(0, 40, 2)
        ]

    assert response(*observations(10, 0)).watermark_unchanged_s == 38.0
    assert response(*observations(0, 0)).watermark_unchanged_s == 0.0
    assert response(*observations(10, 1)).watermark_unchanged_s == 0.0


def test_the_history_is_bounded_and_returned_from_a_time_on() -> None:
    history = MetricsHistory(app, 2.0)
    for number in range(1000):
        history.record(observation(2.0 * number, states=(owner(lag=number),)))
    every = history.answer(0)
    assert every is not None
    assert len(every.history) == 300
    since = round((BEGIN.timestamp() + 1990) * 1000)
    some, none = history.answer(since), history.answer(None)
    assert some is not None
    assert [one.query_lag for one in some.history] == [996, 997, 998, 999]
    assert none is not None
    assert none.history == ()


def test_the_service_reports_its_own_states() -> None:
    (state,) = response(observation(0, states=(owner(lag=5, catching_up=1),))).states
    assert (state.name, state.lag, state.roles) == ("flights", 5, {"owner": 3, "catching_up": 1})


def test_the_graph_has_needs_steps_and_counts() -> None:
    found = graph(app, Span(observation(0, worker_part(result=10)), observation(2, worker_part(result=30))))
    nodes = {node.name: node for node in found.nodes}
    assert (nodes["aircraft"].step, nodes["route"].step, nodes["performance"].step) == (1, 2, 3)
    assert nodes["performance"].optional == ("weather",)
    assert nodes["aircraft"].totals == {"result": 30}
    assert nodes["aircraft"].rates == {"result": 10.0}
    assert "tailnum" in found.fields
    assert "aircraft" not in found.fields
