"""Each problem is reported with its component and remedy; a healthy loop has none."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import pytest

from contracts import Application, Count, Emit, State
from examples.departures.event import Departure
from examples.departures.state import Departures
from examples.flights.application import app
from services.query.console.metrics_history import MetricsHistory
from tests.services.query.console.observations import (
    BEGIN,
    JOB,
    WORKERS,
    away,
    derive_part,
    job_part,
    observation,
    owner,
    worker_part,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from contracts.api.loop import HealthReason
    from services.query.console.observation import Observation

RATE = 30


def healthy_loop(at: float, **overrides: float) -> Observation:
    """Return a healthy loop at constant load; `overrides` has other metrics."""
    end_offsets = {name: {0: round(RATE * at)} for name in ("events", "feedback")}
    end_offsets |= {
        "snapshots": {0: round(overrides.get("snapshots", 2 * RATE * at))},
        "dead_letters": {0: round(overrides.get("dead_letters", 0))},
    }
    job = job_part(
        events=RATE * at,
        committed_at=BEGIN.timestamp() + overrides.get("committed_at", at),
        watermark=overrides.get("watermark", 1357000000.0 + at),
        lag=overrides.get("job_lag", 5),
        failures=overrides.get("failures", 0),
        starts=overrides.get("starts", 1),
    )
    worker = worker_part(
        result=RATE * at, lag=overrides.get("worker_lag", 9), breaker=overrides.get("breaker", 0), queued=1
    )
    mine = owner(lag=round(overrides.get("query_lag", 0)), catching_up=round(overrides.get("catching_up", 0)))
    return observation(at, job, worker, derive_part(), end_offsets=end_offsets, states=(mine,))


def reasons(observations: Iterable[Observation], application: Application = app) -> list[HealthReason]:
    history = MetricsHistory(application, 2.0)
    for one in observations:
        history.record(one)
    found = history.answer(None)
    assert found is not None
    seen = None if found.unmonitored else True
    assert found.health.healthy == (False if found.health.reasons else seen)
    return list(found.health.reasons)


def minutes(count: float, **overrides: Callable[[float], float]) -> list[Observation]:
    times = [2.0 * number for number in range(round(30 * count))]
    return [healthy_loop(at, **{name: value(at) for name, value in overrides.items()}) for at in times]


def test_a_healthy_loop_has_no_reasons() -> None:
    assert reasons(minutes(11)) == []


def test_an_idle_loop_has_no_reasons() -> None:
    assert reasons(observation(2.0 * number, worker_part(), states=(owner(),)) for number in range(400)) == []


@pytest.mark.parametrize(
    ("overrides", "what", "where"),
    [
        ({"breaker": lambda _: 2}, "breaker_open", "api:reference"),
        ({"breaker": lambda _: 1}, "breaker_open", "api:reference"),
        ({"catching_up": lambda _: 2}, "catching_up", "query"),
        ({"failures": lambda at: at // 60}, "job_failing", "job"),
        ({"committed_at": lambda _: 0}, "batch_stuck", "job"),
        ({"snapshots": lambda at: min(at, 80)}, "job_silent", "job"),
        ({"starts": lambda at: at < 80}, "job_starting", "job"),
        ({"starts": lambda _: 0, "snapshots": lambda _: 0}, "job_starting", "job"),
        ({"job_lag": lambda at: 100 * at}, "lag_growing", "job"),
        ({"worker_lag": lambda at: 100 * at}, "lag_growing", "workers"),
        ({"worker_lag": lambda at: 50_000 + 10 * at}, "lag_growing", "workers"),
        ({"query_lag": lambda at: 100 * at}, "lag_growing", "query"),
        ({"dead_letters": lambda at: at}, "dead_letters_increasing", "dead_letters"),
    ],
)
def test_each_reason_has_its_component(overrides: dict[str, Callable[[float], float]], what: str, where: str) -> None:
    (found,) = reasons(minutes(2, **overrides))
    assert (found.kind, found.component) == (what, where)
    assert found.message
    assert found.action


@pytest.mark.parametrize(
    "overrides",
    [
        {"worker_lag": lambda at: 5000 - 10 * at},
        {"worker_lag": lambda _: 5000},
        {"worker_lag": lambda at: 5000 + 4000 * (at % 8 == 0)},
        {"worker_lag": lambda at: at / 2},
        {"dead_letters": lambda at: at // 100},
        {"committed_at": lambda at: at - 70},
        {"snapshots": lambda at: at if at < 90 else 90 + (at > 112)},
        {"snapshots": lambda _: 7, "dead_letters": lambda at: at >= 104},
        {"failures": lambda _: 3},
    ],
    ids=[
        "falling",
        "high and level",
        "swinging",
        "small",
        "few dead letters",
        "batch within the limit",
        "silent for less than the limit",
        "a recent record is a dead letter",
        "old failures",
    ],
)
def test_normal_values_give_no_reason(overrides: dict[str, Callable[[float], float]]) -> None:
    assert reasons(minutes(2, **overrides)) == []


def test_a_lag_that_stopped_rising_is_not_growing() -> None:
    assert [reason.kind for reason in reasons(minutes(1, worker_lag=lambda at: 100 * at))] == ["lag_growing"]
    assert reasons(minutes(3, worker_lag=lambda at: 100 * min(at, 60))) == []


def test_a_lag_that_grows_is_reported_with_its_last_value_while_its_process_does_not_answer() -> None:
    *before, last = minutes(1, worker_lag=lambda at: 100 * at)
    parts = tuple(away(part.target) if part.target in WORKERS else part for part in last.parts)
    (found,) = reasons([*before, replace(last, parts=parts)])
    assert (found.kind, found.component) == ("lag_growing", "workers")
    assert "5,600 records wait" in found.message


def test_a_stuck_watermark_is_reported_after_ten_minutes() -> None:
    assert reasons(minutes(9, watermark=lambda _: 1e9)) == []
    (found,) = reasons(minutes(11, watermark=lambda _: 1e9))
    assert (found.kind, found.component) == ("watermark_stuck", "job")


@pytest.mark.parametrize(("address", "where"), [(JOB, "job"), (WORKERS[0], "workers")])
def test_an_unreachable_process_is_reported_and_one_missed_scrape_is_not(address: object, where: str) -> None:
    def without(at: float) -> Observation:
        there = healthy_loop(at)
        return replace(
            there, parts=tuple(away(part.target) if part.target == address else part for part in there.parts)
        )

    assert reasons([healthy_loop(0), healthy_loop(2), without(4)]) == []
    (found,) = reasons([healthy_loop(0), healthy_loop(2), without(4), without(8)])
    assert (found.kind, found.component) == ("process_unreachable", where)
    assert "Connection refused" in found.message
    assert reasons([healthy_loop(0), healthy_loop(2), without(4), without(8), healthy_loop(10)]) == []


def test_a_job_with_few_records_is_not_silent() -> None:
    def one_a_minute(at: float) -> Observation:
        return replace(
            healthy_loop(at), end_offsets={"events": {0: round(at / 60)}, "feedback": {0: 0}, "snapshots": {0: 0}}
        )

    assert reasons(one_a_minute(2.0 * number) for number in range(60)) == []


class AllFlights(State, key="origin", window=timedelta(hours=1)):
    """Flights of an airport by the hour, cancelled ones included."""

    flights: Annotated[int, Count()]


def emitting(emit: Emit, interval_s: float, state: type[State] = AllFlights) -> Application:
    """An application of the flights' events."""
    interval = timedelta(seconds=interval_s)
    return Application(name="flights", event=Departure, state=state, emit=emit, emit_interval=interval)


@pytest.mark.parametrize(
    ("application", "silent"),
    [
        (emitting(Emit.EVENT, 90), True),
        (emitting(Emit.BATCH, 5), True),
        (emitting(Emit.BATCH, 90), False),
        (emitting(Emit.CLOSE, 5), False),
        (emitting(Emit.EVENT, 5, Departures), False),
    ],
    ids=["each event", "short intervals", "long intervals", "closed windows", "filtered events"],
)
def test_a_job_is_silent_only_where_snapshots_are_due(application: Application, *, silent: bool) -> None:
    found = reasons(minutes(2, snapshots=lambda at: min(at, 60)), application)
    assert [one.kind for one in found] == ["job_silent"] * silent


@pytest.mark.parametrize(
    ("application", "grows"), [(emitting(Emit.EVENT, 90), True), (emitting(Emit.BATCH, 90), False)]
)
def test_records_that_wait_for_the_next_micro_batch_are_no_growing_lag(
    application: Application, *, grows: bool
) -> None:
    found = reasons(minutes(1.4, job_lag=lambda at: 2 * RATE * (at % 90)), application)
    assert [one.kind for one in found] == ["lag_growing"] * grows
    found = reasons(minutes(2, job_lag=lambda at: 200 * RATE * at), application)
    assert [one.kind for one in found] == ["lag_growing"], "more than two intervals"


def test_a_job_without_a_committed_batch_is_reported_as_silent_sooner() -> None:
    history = MetricsHistory(app, 2.0)
    messages: dict[int, str] = {}
    for at in range(0, 60, 2):
        history.record(healthy_loop(at, snapshots=min(at, 20), committed_at=-BEGIN.timestamp() if at > 20 else at))
        found = history.answer(None)
        assert found
        if found.health.reasons:
            messages[at] = found.health.reasons[0].message
    assert min(messages) == 34  # the last snapshot is of 20 s, rates are over 10 s, and the patience is about 5 s
    assert "yet" in messages[34]


def test_a_job_that_starts_is_silent_after_the_usual_time_only() -> None:
    """Spark needs 20 s before its query runs, and publishes nothing for half a minute afterwards."""
    history = MetricsHistory(app, 2.0)
    kinds: dict[int, list[str]] = {}
    for at in range(0, 80, 2):
        snapshots = RATE * max(0, at - 50)
        history.record(healthy_loop(at, starts=at > 20, snapshots=snapshots, committed_at=-BEGIN.timestamp()))
        found = history.answer(None)
        assert found
        kinds[at] = [reason.kind for reason in found.health.reasons]
    assert {at: kind for at, kind in kinds.items() if at <= 50} == {
        at: ["job_starting" if at < 40 else "job_silent"] for at in range(0, 52, 2)
    }
    assert kinds[52] == []


def test_an_unreachable_job_is_not_reported_as_silent() -> None:
    def without(at: float) -> Observation:
        there = healthy_loop(at, snapshots=0)
        return replace(there, parts=tuple(away(JOB) if part.target == JOB else part for part in there.parts))

    assert [reason.kind for reason in reasons(without(2.0 * number) for number in range(60))] == ["process_unreachable"]


def test_unowned_partitions_are_reported() -> None:
    (found,) = reasons([replace(healthy_loop(at), states=(owner(unowned=2),)) for at in (0, 2)])
    assert (found.kind, found.component) == ("unowned", "query")
    (found,) = reasons([replace(healthy_loop(at), states=(owner(unowned=2, catching_up=2),)) for at in (0, 2)])
    assert found.kind == "catching_up"


def test_causes_come_first() -> None:
    observations = minutes(2, worker_lag=lambda at: 100 * at, breaker=lambda _: 2, dead_letters=lambda at: at)
    assert [reason.kind for reason in reasons(observations)] == [
        "breaker_open",
        "lag_growing",
        "dead_letters_increasing",
    ]
    broken = [replace(one, end_offsets=None) for one in observations]
    assert reasons(broken)[0].kind == "kafka_unreachable"
