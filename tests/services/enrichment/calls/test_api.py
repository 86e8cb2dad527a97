"""Requests against an API that misbehaves: real HTTP, and no real waiting."""

from __future__ import annotations

import asyncio
import resource
from typing import TYPE_CHECKING

import pytest

from contracts.metrics import worker as metrics
from services.enrichment.calls.caller import Outcome
from tests.services.enrichment.calls.calling import LIMIT, Calling, calling, transport
from tests.services.enrichment.fleet import QUICK

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.services.enrichment.registry import Registry


@pytest.fixture
async def bench(registry: Registry) -> AsyncIterator[Calling]:
    async with calling(registry) as one:
        yield one


async def test_a_result(bench: Calling) -> None:
    found = await bench.answer("P 1/ä")
    assert found == Outcome("result", result={"name": "owner of P 1/ä", "rating": 1.0})
    assert bench.registry.raw == ["/owners/P%201%2F%C3%A4"]
    assert bench.counts.get(metrics.CALLS, "registry", "owner", "result") == 1


@pytest.mark.parametrize(
    ("plate", "status", "reason", "calls"),
    [
        ("missing", "absence", "status 404", 1),
        ("nothing", "absence", "status 204", 1),
        ("forbidden", "failure", "status 403", 1),
        ("redirect", "failure", "status 302: redirects are not followed", 1),
        ("endless", "failure", f"the response is larger than {LIMIT} bytes", 1),
        ("bomb", "failure", f"the response is larger than {LIMIT} bytes", 1),
        ("down", "failure", "status 503", 4),
        ("hang", "failure", "no answer within 0.5 s", 4),
        ("drip", "failure", "no answer within 0.5 s", 4),
        ("headers", "failure", "the connection failed (BadResponseError", 4),
        ("many", "failure", "the connection failed (BadResponseError", 4),
        ("reset", "failure", "the connection failed (DisconnectedError", 4),
        ("malformed", "failure", "the response is not JSON (", 4),
        ("html", "failure", "the response is not JSON (", 4),
        ("nan", "failure", "the response is not JSON (", 4),
        ("wrong", "failure", "the response does not fit Owner: name: Input should be a valid string", 4),
    ],
)
async def test_the_outcome_of_each_fault(bench: Calling, plate: str, status: str, reason: str, calls: int) -> None:
    found = await bench.answer(plate)
    assert (found.status, found.result) == (status, None)
    assert found.reason is not None
    assert found.reason.startswith(reason)
    assert bench.registry.calls == {f"/owners/{plate}": calls}
    assert len(bench.waits) == calls - 1


async def test_slow_is_no_failure_and_a_storm_passes(bench: Calling) -> None:
    assert (await bench.answer("slow")).status == "result"
    assert (await bench.answer("storm")).status == "result"
    assert bench.counts.get(metrics.CALLS, "registry", "owner", "retryable") == 2


@pytest.mark.parametrize(("plate", "waited"), [("busy-bare", 0.0), ("busy-seconds", 3.0), ("busy-date", 7.0)])
async def test_retry_after_is_obeyed(bench: Calling, plate: str, waited: float) -> None:
    assert (await bench.answer(plate)).status == "result"
    assert bench.waits == [waited]


async def test_a_bomb_does_not_take_the_memory(bench: Calling) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await asyncio.gather(*(bench.answer("bomb") for _ in range(10)))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://nowhere.invalid"])
async def test_an_api_that_is_not_there(registry: Registry, url: str) -> None:
    async with transport(url) as way:
        found = await Calling(registry, way, QUICK).answer("P1")
    assert found.status == "failure"
    assert found.reason is not None
    assert found.reason.startswith(("the connection failed (ConnectionRefused", "the connection failed (gaierror"))
    assert found.attempts == QUICK.attempts


async def test_a_failure_has_the_number_of_attempts_and_the_last_response(bench: Calling) -> None:
    found = await bench.answer("html")
    assert (found.attempts, found.response) == (4, "<html>Log in, please</html>")


async def test_the_policy_declares_the_meaning_of_a_status(registry: Registry) -> None:
    policy = QUICK.model_copy(update={"absence": frozenset({403}), "retryable": frozenset({404})})
    async with calling(registry, policy) as bench:
        assert (await bench.answer("forbidden")).status == "absence"
        assert (await bench.answer("missing")).attempts == 4
        assert (await bench.answer("down")).attempts == 1
