"""The main path in memory: what a worker does when Kafka or the API is slow, full or fails."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from contracts.plan import fingerprint
from services.enrichment.calls.caller import Caller
from services.enrichment.calls.tries import Tries
from services.enrichment.errors import DeliveryFailedError
from services.enrichment.metrics import Metrics
from services.enrichment.settings import EnrichmentSettings
from services.enrichment.source import Record
from services.enrichment.worker import Parts, Worker
from tests.services.enrichment.fleet import START, answer, app, snapshot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from contracts import Batch
    from contracts.enrichment import M
    from services.enrichment.source import Listener

ROUND_S = 0.001
DEADLINE_S = 10
WATERS = 20
STUCK = timedelta(milliseconds=50)


class Log:
    """A partition in memory. Implements Source."""

    def __init__(self, values: list[bytes | None]) -> None:
        self.values = values
        self.read = 0
        self.committed: list[int] = []
        self.fetches = 0
        self.pauses = 0
        self.open = asyncio.Event()
        self.open.set()

    def subscribe(self, listener: Listener, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon(listener.assigned, [0])

    async def fetch(self, *, paused: bool, positions: Mapping[int, int]) -> list[Record]:
        await asyncio.sleep(ROUND_S)
        await self.open.wait()
        self.committed.extend(positions.values())
        self.fetches += 1
        self.pauses += paused
        if paused:
            return []
        batch = [Record(0, self.read + n, b"d", value, 0) for n, value in enumerate(self.values[self.read :][:10])]
        self.read += len(batch)
        return batch

    async def lag(self) -> int:
        return len(self.values) - self.read

    async def close(self) -> None:
        return


class Gated:
    """An API and a publisher that wait until they are let; the publisher may fail instead."""

    def __init__(self, version: int = 1) -> None:
        self.version = version
        self.answers, self.acks = asyncio.Event(), asyncio.Event()
        self.fails = False
        self.calls = 0
        self.written: list[bytes] = []

    async def get(self, _: str, model: type[M], /, **_values: str | float) -> M:
        self.calls += 1
        await self.answers.wait()
        return model.model_validate({"name": "x", "street": "x", "price": 1.0})

    async def get_one(self, batch: Batch[M], _: str | int) -> M:
        return await self.get("", batch.model)

    async def publish(self, topic: str, _: bytes | None, value: bytes, timestamp: int = 0) -> None:
        self.written.append(value)
        assert timestamp == 1000 * (START.timestamp() + self.version)
        await self.acks.wait()
        if self.fails:
            raise DeliveryFailedError(topic, "GONE", "it is gone")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 (what is waited for is other code's state)
            await asyncio.sleep(ROUND_S)


@asynccontextmanager
async def running(log: Log, gated: Gated, **settings: object) -> AsyncIterator[Worker]:
    told = EnrichmentSettings.model_validate({"application": "fleet", "commit_every": 0, **settings})
    tries = Tries(app.apis["registry"], sleep=asyncio.sleep, draw=lambda low, _: low, again=lambda: None)
    caller = Caller(app, dict.fromkeys(app.by_name, gated), dict.fromkeys(app.by_name, tries))
    clock = asyncio.get_running_loop().time
    worker = Worker(Parts(app, told, log, caller, gated, Metrics(), lambda: START, clock))
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        yield worker
        worker.stop()


def cars(count: int) -> list[bytes | None]:
    return [snapshot(1, f"P{n}", f"d{n}").encode() for n in range(count)]


async def test_an_offset_is_finished_only_when_its_feedback_is_safe() -> None:
    log, gated = Log(cars(1)), Gated()
    gated.answers.set()
    async with running(log, gated):
        await until(lambda: len(gated.written) == 2)
        fetches = log.fetches
        await until(lambda: log.fetches > fetches + 5)
        assert set(log.committed) <= {0}
        gated.acks.set()
        await until(lambda: 1 in log.committed)


async def test_requests_under_way_are_bounded_and_polling_goes_on() -> None:
    log, gated = Log(cars(100)), Gated()
    gated.acks.set()
    async with running(log, gated, in_flight=WATERS):
        await until(lambda: log.pauses > 1)
        assert gated.calls == WATERS
        assert log.read < 3 * WATERS
        gated.answers.set()
        await until(lambda: 100 in log.committed)
    assert gated.calls == 200


async def test_a_record_that_is_not_delivered_ends_the_worker() -> None:
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


async def test_what_is_skipped_is_told_so_without_a_call() -> None:
    missing = answer(1, fingerprint(app.by_name["owner"], {"plate": "P1"}), {}).model_copy(
        update={"status": "absence", "result": None}
    )
    quoted = answer(1, fingerprint(app.by_name["quote"], {"plate": "P1"}), {"price": 1.0})
    log, gated = Log([snapshot(2, owner=missing, quote=quoted).encode()]), Gated(2)
    gated.acks.set()
    async with running(log, gated):
        await until(lambda: 1 in log.committed)
    (written,) = map(json.loads, gated.written)
    told = {name: written[name] for name in ("enrichment", "status", "reason")}
    assert told == {"enrichment": "street", "status": "skipped", "reason": "owner: absence"}
    assert gated.calls == 0


async def test_a_worker_whose_requests_hang_is_unhealthy_until_they_move() -> None:
    log, gated = Log(cars(1)), Gated()
    gated.acks.set()
    async with running(log, gated) as worker:
        await until(lambda: gated.calls == 2)
        await until(lambda: "nothing moved" in (worker.standing().unhealthy(STUCK) or ""))
        assert worker.standing().unready() is None
        gated.answers.set()
        await until(lambda: worker.standing().work == 0)
        await until(lambda: worker.standing().unhealthy(STUCK) is None)


async def test_a_worker_that_does_not_poll_is_unhealthy_though_it_has_nothing_to_do() -> None:
    log, gated = Log([]), Gated()
    async with running(log, gated) as worker:
        await until(lambda: log.fetches > 2)
        log.open.clear()
        await until(lambda: "not polled" in (worker.standing().unhealthy(STUCK) or ""))
        log.open.set()
        await until(lambda: worker.standing().unhealthy(STUCK) is None)
    assert worker.standing().unready() == "it is stopping"
