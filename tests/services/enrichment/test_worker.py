"""The main path in memory: what a worker does when Kafka or the API is slow, full or fails."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest

from contracts.metrics import worker as metrics
from contracts.planning.fingerprint import fingerprint
from services.runtime.errors import DeliveryFailedError
from tests.deadline import DEADLINE_S
from tests.services.enrichment.fleet import answer, app, snapshot
from tests.services.enrichment.in_memory import Gated, Log, cars, running, until

WATERS = 20
STUCK = timedelta(milliseconds=50)


async def test_an_offset_is_finished_only_when_its_feedback_is_safe() -> None:
    log, gated = Log(cars(1)), Gated()
    gated.answers.set()
    async with running(log, gated):
        await until(lambda: len(gated.written) == 2)
        fetches = log.fetches
        await until(lambda: log.fetches > fetches + 5)
        assert set(log.committed) <= {0}
        await until(lambda: gated.counts.get(metrics.IN_FLIGHT) == 2)
        gated.acks.set()
        await until(lambda: 1 in log.committed)
        await until(lambda: gated.counts.get(metrics.IN_FLIGHT) == 0)


async def test_requests_under_way_are_bounded_and_polling_goes_on() -> None:
    log, gated = Log(cars(100)), Gated()
    gated.acks.set()
    async with running(log, gated, in_flight=5, unfinished=WATERS):
        await until(lambda: log.pauses > 1)
        assert gated.calls == 5
        await until(lambda: gated.counts.get(metrics.PAUSED) == 1)
        assert log.read < 3 * WATERS
        gated.answers.set()
        await until(lambda: 100 in log.committed)
    assert gated.calls == 200


async def test_an_undelivered_record_stops_the_worker() -> None:
    log, gated = Log(cars(1)), Gated()
    gated.fails = True
    gated.answers.set()
    gated.acks.set()
    with pytest.raises(ExceptionGroup) as ended:
        async with running(log, gated):
            await asyncio.sleep(DEADLINE_S)
    assert ended.group_contains(DeliveryFailedError, match="start the worker again")
    assert set(log.committed) <= {0}


async def test_a_worker_that_cannot_finish_stops_in_time_and_commits_nothing() -> None:
    log, gated = Log(cars(5)), Gated()
    async with running(log, gated, stop_within=0.05):
        await until(lambda: gated.calls == 10)
    assert set(log.committed) <= {0}


async def test_a_skipped_request_gets_feedback_without_a_call() -> None:
    missing = answer(1, fingerprint(app.by_name["owner"], {"plate": "P1"}), {}).model_copy(
        update={"status": "absence", "result": None}
    )
    quoted = answer(1, fingerprint(app.by_name["quote"], {"plate": "P1"}), {"price": 1.0})
    log, gated = Log([snapshot(2, owner=missing, quote=quoted).encode()]), Gated()
    gated.acks.set()
    gated.down = {"registry"}
    async with running(log, gated):
        await until(lambda: 1 in log.committed)
    (written,) = map(json.loads, gated.written)
    found = {name: written[name] for name in ("enrichment", "status", "reason")}
    assert found == {"enrichment": "street", "status": "skipped", "reason": "owner: absence"}
    assert gated.calls == 0


async def test_a_worker_whose_requests_hang_is_unhealthy_until_they_move() -> None:
    log, gated = Log(cars(1)), Gated()
    gated.acks.set()
    async with running(log, gated) as worker:
        await until(lambda: gated.calls == 2)
        await until(lambda: "nothing moved" in (worker.health().unhealthy(STUCK) or ""))
        assert worker.health().unready() is None
        gated.answers.set()
        await until(lambda: worker.health().backlog == 0)
        await until(lambda: worker.health().unhealthy(STUCK) is None)


async def test_a_worker_that_does_not_poll_is_unhealthy_though_it_has_nothing_to_do() -> None:
    log, gated = Log([]), Gated()
    async with running(log, gated) as worker:
        await until(lambda: log.fetches > 2)
        log.open.clear()
        await until(lambda: "not polled" in (worker.health().unhealthy(STUCK) or ""))
        log.open.set()
        await until(lambda: worker.health().unhealthy(STUCK) is None)
    assert worker.health().unready() == "it is stopping"


async def test_a_stopping_worker_leaves_after_the_commit_of_finished_requests() -> None:
    log, gated = Log(cars(5)), Gated().let()
    log.confirms = False

    async def confirm() -> None:
        fetches = log.fetches
        await until(lambda: log.fetches > fetches + 20 or log.closed)
        assert not log.closed
        log.confirms = True

    async with running(log, gated, drain=DEADLINE_S):
        await until(lambda: 5 in log.committed)
        confirming = asyncio.create_task(confirm())
    await confirming


async def test_a_worker_that_stops_finishes_the_snapshots_that_it_began_and_no_others() -> None:
    log, gated = Log(cars(5)), Gated()
    gated.answers.set()

    async def one_by_one() -> None:
        gated.acks.set()
        gated.acks.clear()
        await until(lambda: len(gated.written) == 2)
        fetches = log.fetches
        await until(lambda: log.fetches > fetches + 5)
        gated.acks.set()

    async with running(log, gated, in_flight=1):
        await until(lambda: len(gated.written) == 1 and log.read == 5)
        answering = asyncio.create_task(one_by_one())
    await answering
    assert [(one.device_id, one.enrichment) for one in gated.feedback()] == [("d0", "owner"), ("d0", "quote")]
    assert log.committed[-1] == 1
