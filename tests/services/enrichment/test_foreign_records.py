"""Records of other programs in the topic of snapshots: each is a dead letter, and the worker goes on."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from contracts.types.key import LARGEST_KEY
from contracts.wire import LARGEST_COUNT
from tests.services.enrichment.calls.virtual import virtually
from tests.services.enrichment.fleet import snapshot
from tests.services.enrichment.in_memory import Gated, Log, running, until

GOOD = snapshot(1, "P1", "d1").encode()


async def _worked(foreign: bytes) -> tuple[list[str], list[str]]:
    """Return the reasons of the dead letters, and the devices that have answers, of a foreign and a good record."""
    log, gated = Log([foreign, GOOD]), Gated().let()
    async with running(log, gated):
        await until(lambda: 2 in log.committed)
    devices = sorted({feedback.device_id for feedback in gated.feedback()})
    return [dead_letter.reason for dead_letter in gated.dead_letters()], devices


@pytest.mark.parametrize(
    "fields",
    [
        {"device_id": ""},
        {"device_id": "x" * (LARGEST_KEY + 1)},
        {"epoch": LARGEST_COUNT + 1},
        {"version": LARGEST_COUNT + 1},
        {"first_seen": "0001-01-01T00:00:00+01:00"},
        {"first_seen": "9999-12-31T23:59:59-01:00"},
    ],
)
def test_a_record_that_no_answer_can_have_is_a_dead_letter(fields: dict[str, Any]) -> None:
    foreign = orjson.dumps(orjson.loads(snapshot(1, "P2", "d2").encode()) | fields)
    assert virtually(_worked(foreign)) == (["undecodable_snapshot"], ["d1"])


@pytest.mark.parametrize("depth", [253, 300, 1_000, 2_000])
def test_an_input_that_is_nested_deeply_is_a_dead_letter(depth: int) -> None:
    foreign = snapshot(1, "PLATE", "d2").encode().replace(b'"PLATE"', b"[" * depth + b"]" * depth)
    assert virtually(_worked(foreign)) == (["undecodable_snapshot"], ["d1"])
