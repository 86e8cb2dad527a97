"""The console in a real Chromium, of a suite of two applications."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from services.query.lookup.authentication import ANONYMOUS
from tests.services.query.console.browser import OUTSIDE, visiting
from tests.services.query.console.departing import SUITE, two_at_work
from tests.services.query.console.stage import Stage

if TYPE_CHECKING:
    from playwright.async_api import Browser

    from tests.services.query.console.browser import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")
TABS = "nav[aria-label=Applications]"
JOB = "document.querySelector('[data-node=job]').textContent"
FOCUSED = "document.activeElement.textContent"
STREAM = {"devices", "events", "job", "snapshots", "query", "dead_letters"}
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


def observe_both(stage: Stage, *, starts: float = 1, down: str = "") -> None:
    for at in range(0, 60, 2):
        stage.observe(two_at_work(at, until=60, starts=starts, down=down))


async def test_each_application_has_its_loop_and_dead_letters(browser: Browser) -> None:
    async with Stage(suite=SUITE).serving() as stage, visiting(browser, stage) as visit:
        observe_both(stage, starts=0)
        stage.dead_letters.record(stage.dead_letter("of flights"))
        stage.loops.get("departures", ANONYMOUS).dead_letters.record(stage.dead_letter("of departures", "late"))
        await _choose_departures(visit)
        await _walk_through_the_views(visit)
        visit.check()


async def _choose_departures(visit: Visit) -> None:
    page = visit.page
    await visit.go()
    assert await page.locator(f"{TABS} a").all_inner_texts() == ["flights", "departures !"]
    await visit.sees(".health-report", "Healthy")
    assert "4,200" in await page.evaluate(JOB)
    await page.get_by_role("link", name="departures").focus()
    await page.keyboard.press("Enter")
    await visit.sees(".health-report", "is starting")
    assert "starting" in await page.evaluate(JOB)
    assert await page.evaluate(FOCUSED) == "departures !"
    assert await visit.text(f"{TABS} [aria-current]") == "departures !"
    assert (await visit.text(".brand .application"), await visit.text(".health")) == ("departures", "! 1 problem")
    assert await page.title() == "Loop · departures · Stateloop"


async def _walk_through_the_views(visit: Visit) -> None:
    page = visit.page
    own = page.locator(".dead-letters summary", has_text="of departures")
    await page.keyboard.press("5")
    await own.wait_for()
    assert await page.locator(".dead-letters > li").count() == 1
    assert page.url.endswith("#/dead_letters/departures")
    await page.reload()
    await own.wait_for()
    await page.get_by_role("link", name="Enrichments").click()
    await page.get_by_text("departures declares no enrichment").wait_for()
    await page.get_by_role("link", name="flights", exact=True).click()
    await page.locator("svg.graph .enrichment").first.wait_for()
    await page.get_by_role("link", name="States").click()
    await page.locator(".state").first.wait_for()
    assert not await page.locator(TABS).is_visible()


async def test_the_loop_has_the_components_of_the_application_on_narrow_and_wide_screens(browser: Browser) -> None:
    async with Stage(suite=SUITE).serving() as stage, visiting(browser, stage) as visit:
        observe_both(stage, down="enrichment")
        for width in (390, 1280):
            await visit.page.set_viewport_size({"width": width, "height": 900})
            await visit.go("#/loop/departures")
            await _has_the_components_of_departures(visit)
            await visit.page.get_by_role("link", name="flights").click()
            await _has_the_components_of_flights(visit)
        visit.check()


async def _has_the_components_of_departures(visit: Visit) -> None:
    page = visit.page
    await page.locator(".u-wrap").nth(1).wait_for()
    await visit.sees(".health-report", "Healthy")
    assert await page.locator(f"{TABS} a").all_inner_texts() == ["flights !", "departures"]
    assert {*await page.evaluate(DRAWN)} == STREAM
    assert await page.locator("svg.loop .edge").count() == 5
    assert await page.evaluate(OVERLAPPING) == 0
    assert await page.locator(".chart h3").all_inner_texts() == ["Throughput, per second", "Lag, in records"]
    legend = await page.locator(".u-label").all_inner_texts()
    assert {one.lower() for one in legend} - {"value", "time"} == {"events", "snapshots", "job", "query"}
    assert await page.locator(".processes tbody tr").count() == 1


async def _has_the_components_of_flights(visit: Visit) -> None:
    page = visit.page
    await visit.sees(".health-report", "2 problems")
    assert {*await page.evaluate(DRAWN)} == STREAM | {"workers", "feedback", "apis"}
    assert await page.locator("svg.loop .edge").count() == 10
    assert await page.locator("[data-node=workers]").get_attribute("data-status") == "unreachable"
    assert await page.evaluate(OUTSIDE) == []
    assert await page.locator(".chart").count() == 3
