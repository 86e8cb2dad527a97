"""The dispatcher starts requests within the limits of one API."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from contracts.records.record import Record
from services.enrichment.dispatcher import Dispatcher
from services.enrichment.partition_state import PartitionState
from services.runtime.broker_clock import BrokerClock
from tests.deadline import DEADLINE_S
from tests.services.enrichment.fleet import START, app, snapshot
from tests.services.enrichment.in_memory import Gated
from tests.services.runtime.worker.assigned import assigned

if TYPE_CHECKING:
    from services.enrichment.in_flight import PendingRequest


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
    begun: list[str] = []
    end = asyncio.Event()

    async def run(_: PartitionState, one: PendingRequest) -> None:
        begun.append(one.request.device_id)
        await end.wait()

    state = PartitionState(assigned(), 1000, timedelta(hours=1), lambda: 0.0, BrokerClock(lambda: 0.0))
    dispatcher = Dispatcher("registry", 2, Gated(), asyncio.create_task, run)
    *ordinary, last = pending(state, 6)
    last.request = dataclasses.replace(last.request, skipped="place: absence")
    for one in [*ordinary[:4], last, ordinary[4]]:
        dispatcher.add(state, one)
    await asyncio.sleep(0)
    assert begun == ["d0", "d1", "d5"]
    end.set()
    await asyncio.sleep(0.01)
    assert len(begun) == 6


@pytest.mark.parametrize("waits", [False, True], ids=["for room", "for its API"])
async def test_a_closed_dispatcher_starts_nothing_and_waits_for_no_api(*, waits: bool) -> None:
    begun: list[str] = []
    end, away = asyncio.Event(), Gated()

    async def run(_: PartitionState, one: PendingRequest) -> None:
        begun.append(one.request.device_id)
        await end.wait()

    state = PartitionState(assigned(), 1000, timedelta(hours=1), lambda: 0.0, BrokerClock(lambda: 0.0))
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        dispatcher = Dispatcher("registry", 2 if waits else 1, away, group.create_task, run)
        first, second = pending(state, 2)
        dispatcher.add(state, first)
        away.down = {"registry"}
        dispatcher.add(state, second)
        await asyncio.sleep(0)
        dispatcher.close()
        end.set()
    assert begun == ["d0"]
    assert len(dispatcher) == 1
