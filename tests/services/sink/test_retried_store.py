"""Stores that do not answer for a while, on real servers and in memory."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import psycopg

from contracts.metrics import sink as metrics
from contracts.metrics.counts import Counts
from contracts.sinks import Move, PositionConflictError, Row, RowBatch, Step, StoreUnavailableError, Target, Windows
from contracts.testing.memory_store import MemoryStore
from services.sink.retried_store import RetriedStore
from tests.services.sink.in_memory import until
from tests.services.sink.records import NOW_US

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from contracts.testing.stores import StoreHarness
    from tests.services.sink.servers import PostgresqlServer, RedisServer

TIMEOUT = timedelta(seconds=0.3)


@contextmanager
def frozen(server: RedisServer) -> Iterator[None]:
    assert server.process
    server.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.process.send_signal(signal.SIGCONT)


@contextmanager
def locked(server: PostgresqlServer) -> Iterator[None]:
    with psycopg.connect(server.url) as connection:
        connection.execute("LOCK TABLE stateloop_positions")
        yield


@contextmanager
def silent(server: PostgresqlServer) -> Iterator[None]:
    """Freeze the server, also for requests to cancel a query, as a host is that is gone without closing connections."""
    with psycopg.connect(server.url) as connection:
        found = connection.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'stateloop-sink'")
        backends = [int(pid) for (pid,) in found]
    assert server.process
    processes = [server.process.pid, *backends]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in reversed(processes):
            os.kill(process, signal.SIGCONT)


def batch(number: int) -> RowBatch:
    row = Row("a", NOW_US, 1, number, NOW_US, b'{"number": %d}' % number, None, 0, 0)
    return RowBatch((Step((), (row,)),), {0: Move(number - 1, number)})


async def check_hanging(harness: StoreHarness, hanging: Callable[[], AbstractContextManager[None]]) -> None:
    target, counts = Target(f"hangs-{uuid.uuid4().hex[:12]}", "topic", Windows.NEWEST), Counts(metrics.CATALOGUE)
    store = RetriedStore("flights", harness.store(target), TIMEOUT, counts, asyncio.get_running_loop().time, min)
    await store.open()
    assert await store.write(batch(1)) == 1
    with hanging():
        writing = asyncio.create_task(store.write(batch(2)))
        await until(lambda: counts.get(metrics.FAILURES, "flights") >= 2)
        assert "no answer within 0.3 s" in (store.problem() or "")
        assert not writing.done()
    try:
        assert await writing == 1
    except PositionConflictError as error:  # it was written, and the answer was lost
        assert error.positions == {0: 2}  # noqa: PT017
    assert store.problem() is None
    assert await store.positions() == {0: 2}
    assert await store.write(batch(3)) == 1
    assert [one[1:] for one in await harness.rows(target)] == [(NOW_US, 1, 3, 0, {"number": 3})]
    await store.close()


async def test_a_redis_that_is_frozen(redis_server: RedisServer) -> None:
    await check_hanging(redis_server, lambda: frozen(redis_server))


async def test_a_postgresql_whose_positions_are_locked(postgresql_server: PostgresqlServer) -> None:
    await check_hanging(postgresql_server, lambda: locked(postgresql_server))


async def test_a_postgresql_that_does_not_answer_a_request_to_cancel(postgresql_server: PostgresqlServer) -> None:
    """The client waits for some seconds for the answer to that request, and not for ever."""
    await check_hanging(postgresql_server, lambda: silent(postgresql_server))


class Failing(MemoryStore):
    """A store whose next looks at the positions fail. It counts how often it is opened, and its operations at once."""

    def __init__(self) -> None:
        super().__init__(Target("flights", "topic", Windows.NEWEST))
        self.failures = self.opened = self.running = self.most = 0

    async def open(self) -> None:
        self.opened += 1
        await super().open()

    async def positions(self) -> Mapping[int, int]:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError("the connection is broken")
        return await super().positions()


async def test_a_store_is_opened_again_after_a_failure_and_used_by_one_operation_at_a_time() -> None:
    failing = Failing()
    store = RetriedStore("flights", failing, TIMEOUT, Counts(metrics.CATALOGUE), asyncio.get_running_loop().time, min)
    await store.open()
    failing.failures = 2
    assert await asyncio.gather(*(store.positions() for _ in range(3))) == [{}, {}, {}]
    assert (failing.opened, failing.most) == (3, 1)
