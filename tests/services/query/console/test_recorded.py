"""The answers for a recorded run of two applications: byte for byte as they were recorded.

The run has calls and failures of two workers, a restart, and targets and a broker that do not answer. After a change
that users should see, record the answers again with `python -m tests.services.query.console.test_recorded`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aiohttp import ClientSession

from contracts.api.loop import StateStatus
from contracts.metrics import worker
from tests.services.query.console.departing import SUITE
from tests.services.query.console.observations import (
    JOB,
    WORKERS,
    a_dead_letter,
    away,
    derive_part,
    job_of,
    observation,
    owner,
    worker_part,
)
from tests.services.query.console.stage import Stage

if TYPE_CHECKING:
    from services.query.console.observation import Observation

RECORDED = Path(__file__).with_name("recorded_answers.txt")
PATHS = (
    "/v1/loop?since=0",
    "/v1/loop?application=departures",
    "/v1/loop/graph",
    "/v1/loop/graph?application=departures",
    "/v1/loop/dead_letters?limit=2",
)
DEPARTURES = StateStatus(
    name="departures", topic="departures_snapshots", roles={"owner": 2, "elsewhere": 1}, lag=5, unowned=1
)


def observed(at: int) -> Observation:
    """Return the observation after so many seconds."""
    jobs: dict[str, dict[str, float]] = {
        "flights": {"events": 30 * at, "feedback": 60 * at, "lag": 7 * at, "failures": at // 6, "watermark": 1e9 + at},
        "departures": {"events": 3 * at, "keys": 11, "starts": at > 4},
    }
    slow = {worker.CALL_SECONDS: {"reference": [0.004 * number for number in range(3 * at)]}}
    first = worker_part(WORKERS[0], slow, snapshots=9 * at, result=20 * at, absence=at, hit=at, miss=2 * at, queued=4)
    counted = at % 8  # it restarts after 8 s
    failure = ("timed out", 7.0, 1060.0)
    second = worker_part(WORKERS[1], None, failure, snapshots=counted, result=3 * counted, lag=50 * at, breaker=1)
    parts = (
        away(JOB, "Connection refused") if at == 10 else job_of(**jobs),
        first,
        away(WORKERS[1], "no response within 2 s") if at == 4 else second,
        derive_part(),
    )
    topics = {"events": 30, "feedback": 60, "snapshots": 90, "dead_letters": 1, "departures_snapshots": 2}
    end_offsets = {name: {0: number * at, 1: at} for name, number in topics.items()}
    found = observation(at, *parts, end_offsets=end_offsets, states=(owner(lag=at, catching_up=1), DEPARTURES))
    return replace(found, end_offsets=None if at == 6 else found.end_offsets, instances=("one", "two"))


async def answers() -> str:
    """Return the answers: a path and its body in each line."""
    stage = Stage(suite=SUITE)
    for at in range(0, 16, 2):
        stage.observe(observed(at))
    for number in range(3):
        stage.dead_letters.record(a_dead_letter(number, "{"))
    async with stage.serving(), ClientSession() as session:
        lines = []
        for path in PATHS:
            async with session.get(stage.base + path) as response:
                lines.append(f"{path} {await response.text()}\n")
    return "".join(lines)


@pytest.mark.asyncio(loop_scope="session")
async def test_the_answers_are_those_that_were_recorded() -> None:
    found, recorded = (text.splitlines() for text in (await answers(), RECORDED.read_text(encoding="utf-8")))
    assert found == recorded


if __name__ == "__main__":
    RECORDED.write_text(asyncio.run(answers()), encoding="utf-8")
