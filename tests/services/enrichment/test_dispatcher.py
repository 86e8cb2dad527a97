"""The dispatcher starts requests within the limits of one API."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from contracts.records.record import Record
from contracts.wire import LARGEST_HEAD
from services.enrichment.dispatcher import Dispatcher
from services.enrichment.partition_state import PartitionState
from services.runtime.broker_clock import BrokerClock
from services.runtime.worker.backpressure import Backpressure
from tests.deadline import DEADLINE_S
from tests.services.enrichment.fleet import START, app, snapshot
from tests.services.enrichment.in_memory import Gated, until
from tests.services.runtime.worker.assigned import assigned

if TYPE_CHECKING:
    from services.enrichment.in_flight import PendingRequest


class Calls:
    """The calls of requests, which last until `end` is set."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.end = asyncio.Event()

    async def run(self, _: PartitionState, one: PendingRequest) -> None:
        """Note the device of a request, and wait for the end."""
        self.begun.append(one.request.device_id)
        await self.end.wait()


def new_state(backpressure: Backpressure | None = None) -> PartitionState:
    return PartitionState(assigned(backpressure), 1000, timedelta(hours=1), lambda: 0.0, BrokerClock(lambda: 0.0))


def pending(state: PartitionState, count: int) -> list[PendingRequest]:
    """One request for each of this many devices."""
    found = []
    for offset in range(count):
        request = state.plan(app, snapshot(1).model_copy(update={"device_id": f"d{offset}"}), START).requests[0]
        one = state.add(Record("snapshots", 0, offset, 0, b"d", b"{}"), request, None)
        assert one
        found.append(one)
    return found


async def test_a_skipped_request_frees_no_slot_for_others() -> None:
    state, calls = new_state(), Calls()
    dispatcher = Dispatcher("registry", 2, 1000, Gated(), asyncio.create_task, calls.run)
    *ordinary, last = pending(state, 6)
    last.request = dataclasses.replace(last.request, skipped="place: absence")
    for one in [*ordinary[:4], last, ordinary[4]]:
        dispatcher.add(state, one)
    await asyncio.sleep(0)
    assert calls.begun == ["d0", "d1", "d5"]
    calls.end.set()
    await asyncio.sleep(0.01)
    assert len(calls.begun) == 6


async def test_requests_start_while_those_that_run_take_fewer_bytes_than_the_limit() -> None:
    state, calls = new_state(), Calls()
    dispatcher = Dispatcher("registry", 6, 3, Gated(), asyncio.create_task, calls.run)
    for one in pending(state, 6):  # each takes two bytes
        dispatcher.add(state, one)
    await asyncio.sleep(0)
    assert (calls.begun, len(dispatcher)) == (["d0", "d1"], 4)
    calls.end.set()
    await until(lambda: len(calls.begun) == 6)


async def test_a_running_request_keeps_only_its_inputs_and_the_head_of_its_record() -> None:
    async def run(_: PartitionState, one: PendingRequest) -> None:
        state.finish(one)

    backpressure = Backpressure(1000, 100_000, 1000)
    state = new_state(backpressure)
    (request, _) = state.plan(app, snapshot(1), START).requests
    one = state.add(record := Record("snapshots", 0, 1, 0, b"d", b"x" * 90_000), request, None)
    assert one
    assert backpressure.bytes == 90_000
    state.partition.track(1, 1)
    Dispatcher("registry", 1, 1000, Gated(), asyncio.create_task, run).add(state, one)
    assert one.record == record._replace(value=b"x" * LARGEST_HEAD)
    assert backpressure.bytes == LARGEST_HEAD + len(b'"P1"')
    await until(lambda: backpressure.count == backpressure.bytes == 0)


@pytest.mark.parametrize("waits", [False, True], ids=["for room", "for its API"])
async def test_a_closed_dispatcher_starts_nothing_and_waits_for_no_api(*, waits: bool) -> None:
    state, calls, away = new_state(), Calls(), Gated()
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        dispatcher = Dispatcher("registry", 2 if waits else 1, 1000, away, group.create_task, calls.run)
        first, second = pending(state, 2)
        dispatcher.add(state, first)
        away.down = {"registry"}
        dispatcher.add(state, second)
        await asyncio.sleep(0)
        dispatcher.close()
        calls.end.set()
    assert calls.begun == ["d0"]
    assert len(dispatcher) == 1


async def test_a_cancelled_request_leaves_the_queue_and_the_others_keep_their_order() -> None:
    begun: list[str] = []

    async def run(_: PartitionState, one: PendingRequest) -> None:
        begun.append(one.request.device_id)

    away, state = Gated(), new_state()
    away.down = {"registry"}
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        dispatcher = Dispatcher("registry", 4, 1000, away, group.create_task, run)
        queued = pending(state, 4)
        for one in queued:
            dispatcher.add(state, one)
        assert not dispatcher.is_low.is_set()
        for offset in (1, 3):
            skip = dataclasses.replace(queued[offset].request, skipped="place: absence", fingerprint="skip")
            state.add(Record("snapshots", 0, 4 + offset, 0, b"d", b"{}"), skip, None)
        assert len(dispatcher) == 2
        assert dispatcher.is_low.is_set()
        away.down.clear()
        away.back.set()
    assert begun == ["d0", "d2"]


async def test_an_abandoned_partition_leaves_nothing_in_the_queue() -> None:
    away, state = Gated(), new_state()
    away.down = {"registry"}

    async def run(_: PartitionState, __: PendingRequest) -> None:
        raise AssertionError

    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        dispatcher = Dispatcher("registry", 4, 1000, away, group.create_task, run)
        for one in pending(state, 4):
            dispatcher.add(state, one)
        assert state.abandon() == 4
        assert len(dispatcher) == 0
        away.back.set()
