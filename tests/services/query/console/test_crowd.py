"""The console in a real Chromium, with a crowded loop."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from tests.services.query.console.browser import OUTSIDE, device, visiting
from tests.services.query.console.crowd import APIS, LONG, NAMES, SUITE, WORKERS, crowd
from tests.services.query.console.flights import flight
from tests.services.query.console.stage import Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser

    from tests.services.query.console.browser import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")
VIEWS = ("", "#/states/flights", "#/enrichments", "#/dead_letters", device(LONG))
WIDTHS = (360, 1280)
REASONS = tuple(f"reason_number_{number}_of_another_application_with_a_long_name" for number in range(20))
SUGGESTED = """
performance.getEntriesByType("resource")
  .filter((one) => one.name.includes("fields=device_id"))
  .map((one) => one.responseStatus)
"""
OVERLAPPING = """
[...document.querySelectorAll("svg :is(.api, .enrichment)")].filter((group) => {
  const [name, rate] = [".name", ".rate"].map((one) => group.querySelector(one).getBoundingClientRect());
  return rate.width && name.right > rate.left;
}).map((group) => group.textContent)
"""


def observe_crowd(stage: Stage, *times: int, **faults: Any) -> None:
    """Record observations of the crowded loop at these seconds; each takes most of a second."""
    for at in times:
        stage.observe(crowd(at, **faults))


def long_snapshot() -> dict[str, Any]:
    """Return a snapshot with long names and values everywhere."""
    value = flight(1, 5)
    answer = {"version": 1, "ts": "2013-01-01T10:00:00Z", "fingerprint": "f"}
    found = {"a_field_of_a_result_with_a_very_long_name_indeed": "words " * 200, "list": [1, 2, 3] * 100}
    failed = {"status": "failure", "reason": "503 Service Unavailable, " * 20}
    outcomes: list[dict[str, Any]] = [
        {"status": "result", "result": found},
        failed,
        {"status": "skipped", "reason": "x" * 300},
    ]
    enrichments = {name: answer | outcomes[number % len(outcomes)] for number, name in enumerate(NAMES)}
    state = value["state"] | {"a_field_with_a_very_long_name_" * 4: "x" * 3000, "list": ["JFK", "SFO"] * 200}
    return value | {"device_id": LONG, "state": state, "enrichments": enrichments}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def crowded_stage() -> AsyncIterator[Stage]:
    """Give a console over a crowded loop. Each test changes another part of it: see there."""
    async with Stage(suite=SUITE).serving() as serving:
        observe_crowd(serving, 0, 8, down=APIS[3:5], unreachable=WORKERS[2:4])
        value = long_snapshot()
        for key in (LONG, *(f"{LONG}{number:03}" for number in range(60))):
            serving.put(key, 1_234_567, value)
        for number in range(80):
            serving.dead_letters.record(serving.dead_letter("detail " * 100, REASONS[number % len(REASONS)]))
        yield serving


@pytest_asyncio.fixture(loop_scope="session")
async def crowded_visit(browser: Browser, crowded_stage: Stage) -> AsyncIterator[Visit]:
    """Give a page of that console."""
    async with visiting(browser, crowded_stage, height=740) as found:
        yield found
        found.check()


async def test_nothing_is_cut_off_or_overlaps(crowded_visit: Visit) -> None:
    page = crowded_visit.page
    for width, route in product(WIDTHS, VIEWS):
        await page.set_viewport_size({"width": width, "height": 740})
        await crowded_visit.go(route)
        await crowded_visit.until("document.querySelector('main').innerText.length > 200")
        where = f"{route} at {width} pixels"
        assert await page.evaluate("document.documentElement.scrollWidth") == width, where
        assert await page.evaluate(OUTSIDE) == [], where
        assert await page.evaluate(OVERLAPPING) == [], where


async def test_the_overview_folds_what_is_alike_and_shows_what_is_down_first(crowded_visit: Visit) -> None:
    """The observations are changed here."""
    page, stage = crowded_visit.page, crowded_visit.stage
    await crowded_visit.go()
    apis = page.locator("svg .api")
    assert [await apis.nth(number).get_attribute("data-node") for number in (0, 1)] == [
        f"api:{one}" for one in APIS[3:5]
    ]
    assert await apis.count() == 6
    assert "9 more" in (await apis.last.text_content() or "")

    kinds = page.locator(".problems > li")
    listed = await kinds.evaluate_all("(all) => all.map((one) => one.dataset.kind)")
    assert listed == ["process_unreachable", "breaker_open"]
    assert "4 problems" in await crowded_visit.text(".health-report h2")
    await kinds.first.get_by_text("and 1 more of this kind").click()

    workers = page.locator(".processes tbody tr")
    assert await workers.count() == 1 + 1 + 2, "the job, the sum of the workers, and those that are unreachable"
    assert "24 × worker" in await workers.nth(1).inner_text()  # noqa: RUF001  # as the page writes it
    assert "2 unreachable" in await workers.nth(1).inner_text()
    await page.get_by_role("button", name="Show each worker").focus()
    await page.keyboard.press("Enter")
    assert await workers.count() == 1 + 1 + 24

    observe_crowd(stage, 20, down=APIS[3:5], unreachable=(*WORKERS[2:4], WORKERS[7]))
    await kinds.first.get_by_text("and 2 more of this kind").wait_for()
    assert await kinds.first.get_by_text(WORKERS[3].url).is_visible(), "opened details stay open"
    observe_crowd(stage, 24)
    await crowded_visit.sees(".processes tr.sum", "all up")
    assert await page.evaluate("document.activeElement.textContent") == "Show fewer", "the button keeps the focus"


async def test_dead_letters_of_many_reasons_are_listed_on_demand_and_stay_open(crowded_visit: Visit) -> None:
    """The dead letters are changed here."""
    page, log = crowded_visit.page, crowded_visit.stage.dead_letters
    await crowded_visit.go("#/dead_letters")
    reasons, letters = page.locator(".reason"), page.locator(".dead-letters > li")
    await reasons.first.wait_for()
    assert await reasons.count() == 8
    await page.get_by_role("button", name="Show 12 more reasons").click()
    assert await reasons.count() == 20
    await page.get_by_role("button", name="Show 60 more").click()
    assert await letters.count() == 80

    first = page.locator(".dead-letters details").first
    await first.locator("summary").click()
    await first.locator("pre").focus()
    await page.evaluate("getSelection().selectAllChildren(document.querySelector('details[open] pre'))")
    log.record(crowded_visit.stage.dead_letter("a new one"))
    await letters.locator("summary", has_text="a new one").wait_for()
    assert await page.evaluate("document.activeElement.tagName") == "PRE", "the open dead letter keeps the focus"
    assert "detail" in await page.evaluate("getSelection().toString()")

    for number in range(200):
        log.record(crowded_visit.stage.dead_letter(f"{number}", "malformed"))
    rare = page.get_by_role("button", name=REASONS[0])
    await rare.focus()
    await page.keyboard.press("Enter")
    await page.get_by_text(f"None of the latest 100 is {REASONS[0]}").wait_for()
    log.record(crowded_visit.stage.dead_letter("again", REASONS[0]))
    await letters.locator("summary", has_text="again").wait_for()
    assert await rare.evaluate("(one) => one === document.activeElement"), "the chosen reason keeps the focus"


async def test_keys_with_large_values_are_counted_suggested_and_requested_in_small_pages(crowded_visit: Visit) -> None:
    """The states are changed here, at last."""
    page, stage = crowded_visit.page, crowded_visit.stage
    await crowded_visit.go("#/states/flights")
    tally = page.locator("td.tally").first
    await tally.wait_for()
    assert await tally.locator(".mark").all_inner_texts() == ["✓ 5", "✗ 5", "» 4"]
    assert await page.locator("table.keys td.mark").count() == 0
    await page.keyboard.press("/")
    await page.keyboard.type(LONG[:8])
    await page.locator("#suggestions [role=option]").nth(9).wait_for()
    assert set(await page.evaluate(SUGGESTED)) == {200}, "suggestions request keys without values"

    for number in range(40):
        value = flight(number, 5) | {"enrichments": {}}
        value["state"]["large"] = "x" * 100_000
        stage.put(f"!{number:02}", 1, value)
    await crowded_visit.load("#/states/flights")
    await crowded_visit.until("document.querySelectorAll('table.keys tbody tr').length === 9")
