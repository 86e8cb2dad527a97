"""The components of a loop are those that its application declares. One without a target is never healthy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientSession

from examples.departures.application import departures
from examples.flights.application import app as flights
from examples.weather.application import notifying
from services.query.console.components import components, unmonitored, works_for
from services.query.console.metrics_history import MetricsHistory
from tests.services.query.console.departing import two_at_work
from tests.services.query.console.observations import at_work

if TYPE_CHECKING:
    from collections.abc import Collection

    from contracts import Application
    from tests.services.query.console.stage import Stage

ALL = {"job", "enrichment", "derive"}
STREAM = {"devices", "events", "job", "snapshots", "query", "dead_letters"}


@pytest.mark.parametrize(
    ("application", "others", "kinds"),
    [
        (flights, {"workers", "apis", "feedback", "derive"}, ["enrichment", "derive"]),
        (notifying, {"workers", "apis", "derive"}, ["enrichment", "derive"]),
        (departures, set(), []),
    ],
    ids=["enrichments", "a webhook", "neither"],
)
def test_an_application_has_the_components_that_it_declares(
    application: Application, others: set[str], kinds: list[str]
) -> None:
    found = components(application)
    assert {*found} == STREAM | others
    assert len(found) == len({*found})
    known = ("job", "query", "sink", "enrichment", "derive")
    assert [kind for kind in known if works_for(kind, application)] == ["job", "query", "sink", *kinds]


def test_the_response_has_the_components_and_nothing_of_others() -> None:
    history = MetricsHistory(departures, 2.0)
    for at in (0, 2):
        history.record(two_at_work(at, until=2))
    found = history.answer(0)
    assert found is not None
    assert {*found.components} == STREAM
    assert {*found.topics} == {"events", "snapshots", "dead_letters"}
    assert len(found.job) == 1
    assert (found.workers, found.others, found.apis) == ((), {}, ())
    assert {(one.feedback, one.calls, one.worker_lag) for one in found.history} == {(None, None, None)}


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
    found = unmonitored(flights, kinds)
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
