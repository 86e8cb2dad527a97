"""Snapshots through a worker: none waits for an unrelated one, and memory does not grow."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from dataclasses import replace

import pytest

from contracts import Application
from contracts.metrics import worker as metrics
from contracts.planning.fingerprint import fingerprint
from tests.services.enrichment.fleet import START, Car, Seen, answer, app, owner, quote, snapshot, street
from tests.services.enrichment.in_memory import Gated, Log, cars, running, until

APART = Application(
    name="apart",
    event=Seen,
    state=Car,
    enrichments=(owner, street, replace(quote, api="prices")),
    topics=app.topics,
)
"""As the fleet, but quotes come from an API of their own."""
BEHIND = 30_000


def done(device: str, version: int = 1) -> bytes:
    """A snapshot that calls for nothing."""
    named = {"name": "x", "rating": 1.0}
    slots = {
        "owner": answer(version, fingerprint(owner, {"plate": "P"}), named),
        "quote": answer(version, fingerprint(quote, {"plate": "P"}), {"price": 1.0}),
        "street": answer(version, fingerprint(street, {"owner": named}), {"street": "x"}),
    }
    return snapshot(version + 1, "P", device, **slots).encode()


@pytest.mark.slow
async def test_tens_of_thousands_are_finished_behind_one_that_hangs() -> None:
    log, gated = Log([snapshot(1, "slow", "d0").encode(), *[done("d1")] * BEHIND]), Gated().let()
    gated.blocked["slow"] = asyncio.Event()
    log.batch = 5000
    async with running(log, gated):
        await until(lambda: log.read == BEHIND + 1 and gated.counts.get(metrics.SNAPSHOTS) == BEHIND + 1)
        assert set(log.committed) <= {0}
        await until(lambda: gated.counts.get(metrics.UNCOMMITTED) == BEHIND + 1)
        gated.blocked["slow"].set()
        await until(lambda: log.committed[-1] == BEHIND + 1)


@pytest.mark.slow
async def test_reading_beyond_a_slow_request_is_bounded_and_takes_no_memory() -> None:
    log, gated = Log([snapshot(1, "slow", "d0").encode(), *[done("d1")] * 50_000]), Gated().let()
    gated.blocked["slow"] = asyncio.Event()
    async with running(log, gated, max_uncommitted=20_000, unfinished=2000):
        log.batch = 1000
        await until(lambda: gated.counts.get(metrics.SNAPSHOTS) > 5000)
        gc.collect()
        tracemalloc.start()
        await until(lambda: log.fulls > 1 and gated.counts.get(metrics.SNAPSHOTS) == log.read)
        grown, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert 20_000 <= log.read <= 24_000
        pauses, fulls = log.pauses, log.fulls
        await until(lambda: log.fulls > fulls + 2)
        assert log.pauses == pauses, "the worker reads other partitions"
        gated.blocked["slow"].set()
        await until(lambda: log.committed[-1] == 50_001)
    assert grown < 20 * 15_000, f"{grown} bytes for 15,000 finished offsets: they are retained"


async def test_an_unavailable_api_delays_only_its_own_requests() -> None:
    log, gated = Log(cars(100)), Gated().let()
    gated.down = {"prices"}
    async with running(log, gated, APART):
        await until(lambda: gated.counts.get(metrics.ANSWERS, "owner", "result") == 100)
        await until(lambda: gated.counts.get(metrics.QUEUED) == 100)
        assert {one.enrichment for one in gated.feedback()} == {"owner"}
        gated.down.clear()
        gated.back.set()
        await until(lambda: 100 in log.committed)
    assert gated.calls == 200


async def test_unfinished_requests_are_bounded_and_polling_continues() -> None:
    log, gated = Log(cars(1000)), Gated().let()
    gated.down = {"prices"}
    async with running(log, gated, APART, unfinished=100, max_deferred=50):
        await until(lambda: log.pauses > 1)
        assert log.read <= 120
        gated.down.clear()
        gated.back.set()
        await until(lambda: 1000 in log.committed)


async def test_unfinished_bytes_are_bounded_as_well() -> None:
    log, gated = Log(cars(1000)), Gated().let()
    gated.down = {"prices"}
    async with running(log, gated, APART, unfinished_bytes=100 * len(cars(1)[0] or b""), max_deferred=50):
        await until(lambda: log.pauses > 1)
        assert log.read <= 120


@pytest.mark.parametrize("in_flight", [1, 3])
async def test_a_slow_api_does_not_take_the_room_of_another(in_flight: int) -> None:
    log, gated = Log(cars(50)), Gated()
    gated.acks.set()
    async with running(log, gated, APART, in_flight=in_flight):
        await until(lambda: gated.under_way == 2 * in_flight)
        gated.let()
        await until(lambda: 50 in log.committed)


async def test_a_request_that_replaces_a_forged_answer_is_counted() -> None:
    forged = answer(2**53 - 1, "forged", {"name": "x", "rating": 1.0}, START - 2 * app.state.grace)
    log, gated = Log([snapshot(5, "P", "d0", owner=forged).encode()]), Gated()
    async with running(log, gated, stop_within=0):
        await until(lambda: gated.counts.get(metrics.FORGED, "owner") == 1)
        assert gated.counts.get(metrics.FORGED, "quote") == 0
