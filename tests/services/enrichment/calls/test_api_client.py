"""One API as all its calls share it: turns, limits, and an API that goes away and comes back."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from itertools import pairwise

import pytest

from contracts import Breaker, Policy, RateLimit, RetryableCallError
from contracts.metrics import worker as metrics
from services.enrichment.calls.response import Response
from tests.services.enrichment.calls.scripted import LATENCY_S, Desk, Scripted, good
from tests.services.enrichment.calls.virtual import virtually

SECOND = timedelta(seconds=1)
AWAY_S = 600.0
DOWN = "an API counts as down: its requests wait"


def away(target: str) -> Response:
    """Down for ten minutes."""
    return good(target) if asyncio.get_running_loop().time() > AWAY_S else Response(503, b"")


@pytest.mark.parametrize("requests", [1, 3, 20, 500])
def test_an_api_that_is_away_for_minutes_fails_no_request(requests: int) -> None:
    async def scenario() -> None:
        api = Scripted(away)
        desk = Desk(api, Policy(deadline=10 * SECOND))
        found = await desk.answers(requests)
        assert {one.status for one in found} == {"result"}
        assert asyncio.get_running_loop().time() < AWAY_S + 2 + requests * LATENCY_S / Policy().concurrency
        probes = [when for when, _ in api.requests if 60 < when < AWAY_S]
        assert len(probes) <= 3 * AWAY_S, "meanwhile three calls a second try it"
        assert min(api.within) > 1, "which costs their requests nothing of the deadline"

    virtually(scenario())


def test_without_a_breaker_the_attempts_are_over_in_a_minute_or_so() -> None:
    async def scenario() -> None:
        desk = Desk(Scripted(away), Policy(breaker=None))
        assert [one.attempts for one in await desk.answers(3)] == [12, 12, 12]

    virtually(scenario())


def test_requests_fail_by_themselves_while_the_api_works_for_others() -> None:
    async def scenario() -> None:
        api = Scripted(lambda target: Response(500, b"") if target.endswith("P0") else good(target))
        desk = Desk(api, Policy(attempts=8))

        async def others() -> None:
            for number in range(1, 1000):
                assert (await desk.answer(f"P{number}")).status == "result"

        bad, _ = await asyncio.gather(desk.answer("P0"), others())
        assert (bad.status, bad.attempts) == ("failure", 8)
        assert desk.counts.get(metrics.BREAKER, "registry") == 0

    virtually(scenario())


def test_an_open_breaker_is_reported_and_waited_for() -> None:
    async def scenario() -> None:
        desk = Desk(Scripted(away), Policy(breaker=Breaker(open_for=5 * SECOND)))
        assert desk.calls.availability.is_available("registry")
        pending = asyncio.create_task(desk.answers(20))
        await asyncio.sleep(1)
        assert not desk.calls.availability.is_available("registry")
        assert desk.counts.get(metrics.BREAKER, "registry") == 2
        await desk.calls.availability.wait_until_available("registry")
        assert asyncio.get_running_loop().time() >= 5
        await pending
        assert desk.calls.availability.is_available("registry")
        assert desk.counts.get(metrics.BREAKER, "registry") == 0

    virtually(scenario())


def test_the_log_reports_once_why_an_api_is_down_and_once_that_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        await Desk(Scripted(away), Policy()).answers(20)

    with caplog.at_level(logging.INFO):
        virtually(scenario())
    logged = [(record.levelname, record.getMessage(), getattr(record, "facts", {})) for record in caplog.records]
    assert logged == [
        ("WARNING", DOWN, {"api": "registry", "why": "status 503", "failures": 5}),
        ("INFO", "an API is back", {"api": "registry"}),
    ]


def test_the_reason_is_the_current_one_in_log_and_figures(caplog: pytest.LogCaptureFixture) -> None:
    """The API is away, answers HTML for minutes, and is back."""

    def answer(target: str) -> Response:
        now = asyncio.get_running_loop().time()
        if now < 5:
            raise RetryableCallError("connection refused")
        return good(target) if now > AWAY_S else Response(200, b"<html>")

    def breaker_metrics(desk: Desk) -> tuple[dict[str, float], float]:
        found = desk.counts.divided(metrics.BREAKER_FAILURES, ("registry",))
        return {reason: count for (_, reason), count in found.items()}, desk.counts.get(metrics.BREAKER_FAILED_AT)

    async def scenario() -> None:
        desk = Desk(Scripted(answer), Policy())
        pending = asyncio.create_task(desk.answers(20))
        await asyncio.sleep(4)
        assert list(breaker_metrics(desk)[0]) == ["connection refused"]
        await asyncio.sleep(60)
        ((reason, count),), at = breaker_metrics(desk)[0].items(), breaker_metrics(desk)[1]
        assert "not JSON" in reason
        assert count > 30
        assert at > 0
        await pending
        assert breaker_metrics(desk) == ({}, 0)

    with caplog.at_level(logging.INFO):
        virtually(scenario())
    logged = [(record.getMessage(), getattr(record, "facts", {}).get("why", "")[:18]) for record in caplog.records]
    assert logged == [
        (DOWN, "connection refused"),
        ("an API is down for another reason", "the response is no"),
        ("an API is back", ""),
    ]


@pytest.mark.parametrize("answer", [Response(403, b""), Response(404, b""), Response(200, b'{"no": "name"}')])
def test_answers_that_one_cannot_use_do_not_open_the_breaker(answer: Response) -> None:
    async def scenario() -> None:
        desk = Desk(Scripted(lambda _: answer), Policy(attempts=3))
        await desk.answers(50)
        assert desk.calls.availability.is_available("registry")
        assert desk.counts.get(metrics.BREAKER, "registry") == 0

    virtually(scenario())


def test_rubbish_opens_it() -> None:
    async def scenario() -> None:
        desk = Desk(Scripted(lambda _: Response(200, b"<html>")), Policy())
        pending = asyncio.create_task(desk.answers(50))
        await asyncio.sleep(0.1)
        assert not desk.calls.availability.is_available("registry")
        pending.cancel()

    virtually(scenario())


def test_no_more_calls_at_once_than_declared() -> None:
    async def scenario() -> None:
        api = Scripted()
        await Desk(api, Policy(concurrency=7)).answers(100)
        assert api.most == 7

    virtually(scenario())


@pytest.mark.parametrize(("calls", "per"), [(1, 1), (10, 1), (24, 1), (25, 1), (100, 1), (1000, 1), (90, 60)])
def test_a_quota_is_kept_in_any_period_and_used(calls: int, per: int) -> None:
    async def scenario() -> None:
        api = Scripted()
        wanted = 4 * calls
        policy = Policy(rate=RateLimit(calls=calls, per=per * SECOND), concurrency=wanted, deadline=5 * SECOND)
        desk = Desk(api, policy)
        found = await desk.answers(wanted)
        assert {one.status for one in found} == {"result"}, "waiting for its turn costs a call nothing of its deadline"
        times = [when for when, _ in api.requests]
        within = [sum(when <= other < when + per - 1e-6 for other in times) for when in times[:: max(1, calls // 10)]]
        assert max(within) <= calls
        assert times[-1] <= (wanted - 1) * per / calls / 0.95
        assert desk.counts.get(metrics.RATE_WAITS, "registry") >= wanted - max(1, calls // 25) - 1

    virtually(scenario())


@pytest.mark.parametrize(("asks", "rests"), [("20", 20), ("3600", 60)])
def test_when_an_api_asks_to_be_left_alone_all_its_calls_keep_to_it(asks: str, rests: int) -> None:
    def busy(target: str) -> Response:
        early = asyncio.get_running_loop().time() < 1.5 * rests
        return Response(429, b"", retry_after=asks) if early else good(target)

    async def scenario() -> None:
        api = Scripted(busy)
        desk = Desk(api, Policy(attempts=2, backoff=timedelta(0), concurrency=10))
        found = await desk.answers(100)
        assert {one.status for one in found} == {"result"}
        times = [round(when) for when, _ in api.requests]
        assert {when for when in times if when < 2 * rests} == {0, rests}, "it was not over at the second try"
        assert times.count(0) == 10
        assert times.count(rests) <= 3, "a few find out whether it was long enough"

    virtually(scenario())


def test_a_breaker_that_opens_while_a_call_waits_for_the_rate_stops_it() -> None:
    async def scenario() -> None:
        api = Scripted(away)
        policy = Policy(rate=RateLimit(calls=10), breaker=Breaker(open_for=100 * SECOND), max_backoff=SECOND)
        desk = Desk(api, policy)
        pending = asyncio.create_task(desk.answers(100))
        await asyncio.sleep(90)
        assert len(api.requests) <= 7, "five failures opened it; one or two were under way"
        await pending

    virtually(scenario())


def test_a_probe_that_is_given_up_while_it_waits_for_the_rate_leaves_its_place() -> None:
    async def scenario() -> None:
        api = Scripted(lambda target: good(target) if len(api.requests) > 1 else Response(503, b""))
        breaker = Breaker(failures=1, probes=1)
        desk = Desk(api, Policy(rate=RateLimit(calls=1, per=10 * SECOND), breaker=breaker))
        first = asyncio.create_task(desk.answer("P1"))
        await asyncio.sleep(5)
        second = asyncio.create_task(desk.answer("P2"))
        await asyncio.sleep(1)
        first.cancel()
        assert (await second).status == "result"

    virtually(scenario())


def test_the_last_try_has_the_time_that_is_left() -> None:
    async def scenario() -> None:
        api = Scripted(lambda _: Response(503, b""))
        policy = Policy(timeout=SECOND, deadline=SECOND, backoff=SECOND / 2, breaker=None, attempts=3)
        desk = Desk(api, policy)
        await desk.answer("P1")
        assert api.within == pytest.approx([1.0, 1.0 - LATENCY_S - 0.5])

    virtually(scenario())


def test_calls_are_counted_with_api_enrichment_and_outcome() -> None:
    async def scenario() -> None:
        statuses = iter((503, 503, 200))
        api = Scripted(lambda target: Response(next(statuses), good(target).body))
        desk = Desk(api, Policy())
        await desk.answer("P1")
        assert desk.counts.get(metrics.CALLS, "registry", "owner", "retryable") == 2
        assert desk.counts.get(metrics.CALLS, "registry", "owner", "result") == 1
        assert desk.counts.get(metrics.RETRIES, "registry", "owner") == 2
        assert desk.counts.histograms(metrics.CALL_SECONDS)["registry",].count == 3
        assert all(later > earlier for (earlier, _), (later, _) in pairwise(api.requests))

    virtually(scenario())


@pytest.mark.parametrize("others", [0, 3], ids=["idle", "rare"])
def test_a_request_for_which_the_api_always_fails_ends_after_its_attempts_while_traffic_is_idle(others: int) -> None:
    """Its failures open the breaker, and nothing but its own probes could close it."""

    async def scenario() -> None:
        api = Scripted(lambda target: Response(500, b"") if target.endswith("P0") else good(target))
        desk = Desk(api, Policy(attempts=8))
        bad = asyncio.create_task(desk.answer("P0"))
        for number in range(1, others + 1):
            await asyncio.sleep(5)
            assert (await desk.answer(f"P{number}")).status == "result"
        outcome = await bad
        assert (outcome.status, outcome.reason, outcome.attempts) == ("failure", "status 500", 8)
        times = [when for when, target in api.requests if target.endswith("P0")]
        assert len(times) == 8
        assert times[-1] - times[-2] >= 10, "with its backoff"

    virtually(scenario())


def test_a_request_that_gets_no_answer_ends_when_the_api_answers_others() -> None:
    def lost(target: str) -> Response:
        if target.endswith("P0"):
            raise RetryableCallError("no answer within 5 s")
        return good(target)

    async def scenario() -> None:
        desk = Desk(Scripted(lost), Policy(attempts=8))
        bad = asyncio.create_task(desk.answer("P0"))
        await asyncio.sleep(100)
        assert not bad.done(), "without another request, the API may be down"
        for number in range(1, 20):
            await desk.answer(f"P{number}")
            await asyncio.sleep(10)
        assert bad.done()
        assert (bad.result().status, bad.result().reason) == ("failure", "no answer within 5 s")

    virtually(scenario())
