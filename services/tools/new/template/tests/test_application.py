"""The application in memory: no broker, no Spark, no API."""

from datetime import UTC, datetime, timedelta

import pytest
from aiohttp.test_utils import TestClient, TestServer

from myproject.application import Location, Reading, app
from myproject.reference import SITES, server
from myproject.source import DEVICES, reading
from stateloop import AbsentError
from stateloop.testing import Clock, FakeApi, Loop

START = datetime(2026, 5, 1, tzinfo=UTC)
NORTH = {"name": "North hall", "limit": 6.0}


def measured(number: int, temperature: float, site: str = "north") -> Reading:
    return Reading(
        device_id="d1",
        event_id=str(number),
        first_seen=START,
        ts=START + timedelta(seconds=number),
        temperature=temperature,
        site=site,
    )


async def test_a_device_gets_the_location_of_its_site() -> None:
    loop = Loop(app, apis={"reference": FakeApi({"/sites/north": NORTH})}, clock=Clock(START))
    loop.send(measured(1, 4.0))
    loop.send(measured(2, 7.0))
    await loop.settle()
    assert loop.calls == ["location"], "one call for both: the site is the same"
    assert loop.result("d1", "location") == NORTH
    state = loop.snapshot("d1").state
    assert (state["readings"], state["highest"], state["mean"]) == (2, 7.0, 5.5)


async def test_an_unknown_site_has_no_location() -> None:
    api = FakeApi({"/sites/nowhere": AbsentError("nowhere")})
    loop = Loop(app, apis={"reference": api}, clock=Clock(START))
    loop.send(measured(1, 4.0, site="nowhere"))
    await loop.settle()
    assert loop.statuses("d1") == {"location": "absence"}


@pytest.mark.parametrize(("site", "status"), [*((site, 200) for site in SITES), ("nowhere", 404)])
async def test_the_stub_answers(site: str, status: int) -> None:
    async with TestClient(TestServer(server())) as client:
        response = await client.get(f"/sites/{site}")
        assert response.status == status
        if status == 200:
            Location.model_validate(await response.json())


def test_the_source_sends_from_known_sites_and_in_one_window_a_day() -> None:
    readings = [reading(device, START + timedelta(hours=hour)) for device in DEVICES for hour in range(24)]
    assert {sent.site for sent in readings} <= set(SITES)
    assert {sent.first_seen for sent in readings} == {START}
