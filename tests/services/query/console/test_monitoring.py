"""Components without a scrape target are never reported as healthy, but named with the setting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientSession

from examples.flights.application import app
from services.query.console.monitoring import unmonitored
from tests.services.query.console.observations import at_work

if TYPE_CHECKING:
    from collections.abc import Collection

    from tests.services.query.console.stage import Stage

ALL = {"job", "enrichment", "derive"}


@pytest.mark.parametrize(
    ("kinds", "missing"),
    [
        (ALL, []),
        (ALL | {"query"}, []),
        (ALL - {"job"}, ["job"]),
        (ALL - {"derive"}, ["derive"]),
        (ALL - {"enrichment"}, ["workers", "api:reference"]),
        (set(), ["job", "workers", "api:reference", "derive"]),
        ({"worker"}, ["job", "workers", "api:reference", "derive"]),
    ],
)
def test_each_component_without_a_target_is_named_with_the_setting(kinds: Collection[str], missing: list[str]) -> None:
    found = unmonitored(app, kinds)
    assert [one.component for one in found] == missing
    for one in found:
        assert "not monitored: STATELOOP_SCRAPE_TARGETS" in one.message
        assert one.action.startswith("Set STATELOOP_SCRAPE_TARGETS='{\"")


@pytest.mark.asyncio(loop_scope="session")
async def test_the_loop_is_not_healthy_while_a_component_is_not_monitored(stage: Stage) -> None:
    """Without requests, the API may be down."""
    found = await get_json(stage, unmonitored=ALL)
    assert found["health"] == {"healthy": None, "reasons": []}
    assert [one["component"] for one in found["unmonitored"]] == ["job", "workers", "api:reference", "derive"]
    assert [one["breaker"] for one in found["apis"]] == [None]
    found = await get_json(stage, unmonitored=ALL, kafka_unreachable=1)
    assert found["health"]["healthy"] is False


@pytest.mark.asyncio(loop_scope="session")
async def test_a_monitored_loop_is_healthy(stage: Stage) -> None:
    found = await get_json(stage)
    assert (found["health"]["healthy"], found["unmonitored"]) == (True, [])
    assert [one["breaker"] for one in found["apis"]] == ["closed"]


async def get_json(stage: Stage, **overrides: Any) -> Any:
    for at in (0, 2):
        stage.observe(at_work(at, **overrides))
    async with ClientSession() as session, session.get(f"{stage.base}/v1/loop") as response:
        return await response.json()
