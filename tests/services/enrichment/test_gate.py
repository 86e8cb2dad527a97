"""Where the requests of one API wait for room."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from services.enrichment.gate import Gate
from services.enrichment.lane import Lane
from services.enrichment.pressure import Pressure
from services.enrichment.source import Record
from tests.services.enrichment.fleet import START, app, snapshot
from tests.services.enrichment.in_memory import DEADLINE_S, Gated

if TYPE_CHECKING:
    from services.enrichment.work import Work


def works(lane: Lane, count: int) -> list[Work]:
    """One for each of so many devices."""
    found = []
    for offset in range(count):
        request = lane.due(app, snapshot(1).model_copy(update={"device_id": f"d{offset}"}), START).begin[0]
        work = lane.begin(Record(0, offset, b"d", b"{}", 0), request, None)
        assert work
        found.append(work)
    return found


async def test_a_request_that_calls_nobody_makes_no_room_for_those_that_do() -> None:
    begun: list[str] = []
    end = asyncio.Event()

    async def run(work: Work) -> None:
        begun.append(work.request.device_id)
        await end.wait()

    lane = Lane(1000, timedelta(hours=1), lambda: 0.0, Pressure(1000, 10**6, 1000))
    gate = Gate("registry", 2, Gated(), asyncio.create_task, run)
    *ordinary, last = works(lane, 6)
    last.request = dataclasses.replace(last.request, skipped="place: absence")
    for work in [*ordinary[:4], last, ordinary[4]]:
        gate.add(work)
    await asyncio.sleep(0)
    assert begun == ["d0", "d1", "d5"]
    end.set()
    await asyncio.sleep(0.01)
    assert len(begun) == 6


@pytest.mark.parametrize("waits", [False, True], ids=["for room", "for its API"])
async def test_a_gate_that_is_closed_begins_nothing_and_waits_for_no_api(*, waits: bool) -> None:
    begun: list[str] = []
    end, away = asyncio.Event(), Gated()

    async def run(work: Work) -> None:
        begun.append(work.request.device_id)
        await end.wait()

    lane = Lane(1000, timedelta(hours=1), lambda: 0.0, Pressure(1000, 10**6, 1000))
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        gate = Gate("registry", 2 if waits else 1, away, group.create_task, run)
        first, second = works(lane, 2)
        gate.add(first)
        away.down = {"registry"}
        gate.add(second)
        await asyncio.sleep(0)
        gate.close()
        end.set()
    assert begun == ["d0"]
    assert len(gate) == 1
