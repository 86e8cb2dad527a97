"""The console in a real Chromium, of a suite of two applications."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from services.query.lookup.authentication import ANONYMOUS
from tests.services.query.console.browser import OUTSIDE, visiting
from tests.services.query.console.departing import SUITE, two_at_work
from tests.services.query.console.observations import at_work
from tests.services.query.console.stage import Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser

    from tests.services.query.console.browser import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")
TABS = "nav[aria-label=Applications]"
JOB = "document.querySelector('[data-node=job]').textContent"
FOCUSED = "document.activeElement.textContent"
DRAWN = "[...document.querySelectorAll('svg.loop g.node')].map((one) => one.dataset.node)"
OVERLAPPING = """
(() => {
  const boxes = [...document.querySelectorAll("svg.loop .box")].map((one) => one.getBBox());
  const { width, height } = document.querySelector("svg.loop").viewBox.baseVal;
  const apart = (a, b) => a.x + a.width <= b.x || a.y + a.height <= b.y;
  const isOutside = (a) => a.x < 0 || a.y < 0 || a.x + a.width > width || a.y + a.height > height;
  const isHit = (a, place) => boxes.slice(place + 1).some((b) => !apart(a, b) && !apart(b, a));
  return boxes.filter((a, place) => isOutside(a) || isHit(a, place)).length;
})()
"""


@pytest_asyncio.fixture(loop_scope="session")
async def suite(browser: Browser) -> AsyncIterator[Visit]:
    """Give a page over flights, and over departures, whose query has not started yet."""
    async with Stage(suite=SUITE).serving() as stage:
        for at in range(0, 60, 2):
            stage.observe(two_at_work(at, until=60, starts=0))
        stage.dead_letters.record(stage.dead_letter("of flights"))
        log = stage.loops.get("departures", ANONYMOUS).dead_letters
        log.record(stage.dead_letter("of departures", "late"))
        async with visiting(browser, stage) as found:
            yield found
            found.check()


async def test_the_second_application_has_its_own_loop(suite: Visit) -> None:
    await suite.go()
    assert await suite.page.locator(f"{TABS} a").all_inner_texts() == ["flights", "departures !"]
    assert "Healthy" in await suite.text(".health-report")
    assert "4,200" in await suite.page.evaluate(JOB)
    await suite.page.get_by_role("link", name="departures").focus()
    await suite.page.keyboard.press("Enter")
    await suite.until("document.querySelector('.health-report').innerText.includes('is starting')")
    assert "starting" in await suite.page.evaluate(JOB)
    assert await suite.page.evaluate(FOCUSED) == "departures !"
    assert await suite.text(f"{TABS} [aria-current]") == "departures !"
    assert (await suite.text(".brand .application"), await suite.text(".health")) == ("departures", "! 1 problem")
    assert await suite.page.title() == "Loop · departures · Stateloop"


async def test_the_other_views_stay_with_the_application(suite: Visit) -> None:
    await suite.go("#/loop/departures")
    await suite.page.locator("svg.loop").wait_for()
    await suite.page.keyboard.press("5")
    await suite.page.locator(".dead-letters summary", has_text="of departures").wait_for()
    assert await suite.page.locator(".dead-letters > li").count() == 1
    assert suite.page.url.endswith("#/dead_letters/departures")
    await suite.page.reload()
    await suite.page.locator(".dead-letters summary", has_text="of departures").wait_for()
    await suite.page.get_by_role("link", name="Enrichments").click()
    await suite.page.get_by_text("departures declares no enrichment").wait_for()
    await suite.page.get_by_role("link", name="flights", exact=True).click()
    await suite.page.locator("svg.graph .enrichment").first.wait_for()
    await suite.page.get_by_role("link", name="States").click()
    await suite.page.locator(".state").first.wait_for()
    assert not await suite.page.locator(TABS).is_visible()


@pytest.mark.parametrize("width", [390, 1280])
async def test_the_loop_has_the_components_of_the_application(browser: Browser, width: int) -> None:
    stream = {"devices", "events", "job", "snapshots", "query", "dead_letters"}
    async with Stage(suite=SUITE).serving() as stage, visiting(browser, stage, width=width) as visit:
        for at in range(0, 60, 2):
            stage.observe(two_at_work(at, until=60, down="enrichment"))
        await visit.go("#/loop/departures")
        await visit.page.locator(".u-wrap").nth(1).wait_for()
        assert "Healthy" in await visit.text(".health-report")
        assert await visit.page.locator(f"{TABS} a").all_inner_texts() == ["flights !", "departures"]
        assert {*await visit.page.evaluate(DRAWN)} == stream
        assert await visit.page.locator("svg.loop .edge").count() == 5
        assert await visit.page.evaluate(OVERLAPPING) == 0
        assert await visit.page.locator(".chart h3").all_inner_texts() == [
            "Throughput, per second",
            "Lag, in records",
        ]
        legend = await visit.page.locator(".u-label").all_inner_texts()
        assert {one.lower() for one in legend} - {"value", "time"} == {"events", "snapshots", "job", "query"}
        assert await visit.page.locator(".processes tbody tr").count() == 1
        await visit.page.get_by_role("link", name="flights").click()
        await visit.until("document.querySelector('.health-report').innerText.includes('2 problems')")
        assert {*await visit.page.evaluate(DRAWN)} == stream | {"workers", "feedback", "apis"}
        assert await visit.page.locator("svg.loop .edge").count() == 10
        assert await visit.page.locator("[data-node=workers]").get_attribute("data-status") == "unreachable"
        assert await visit.page.evaluate(OUTSIDE) == []
        assert await visit.page.locator(".chart").count() == 3
        visit.check()


async def test_one_application_has_no_tabs(visit: Visit) -> None:
    for at in range(0, 60, 2):
        visit.stage.observe(at_work(at, until=60))
    await visit.go()
    await visit.page.locator("svg.loop").wait_for()
    assert await visit.page.locator(TABS).count() == 1
    assert not await visit.page.locator(TABS).is_visible()
    assert (
        await visit.page.get_by_role("link", name="Dead letters", exact=True).get_attribute("href") == "#/dead_letters"
    )
