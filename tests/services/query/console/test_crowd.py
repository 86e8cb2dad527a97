"""The console in a real Chromium, with a crowded loop."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from tests.services.query.console.browser import OUTSIDE, visiting
from tests.services.query.console.crowd import APIS, LONG, NAMES, SUITE, WORKERS, crowd
from tests.services.query.console.flights import flight
from tests.services.query.console.stage import Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser

    from tests.services.query.console.browser import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")
VIEWS = ("", "#/states/flights", "#/enrichments", "#/dead_letters", f"#/device/flights/{quote(LONG, safe='')}")
WIDTHS = (360, 1280)
REASONS = tuple(f"reason_number_{number}_of_another_application_with_a_long_name" for number in range(20))
OVERLAPPING = """
[...document.querySelectorAll("svg :is(.api, .enrichment)")].filter((group) => {
  const [name, rate] = [".name", ".rate"].map((one) => group.querySelector(one).getBoundingClientRect());
  return rate.width && name.right > rate.left;
}).map((group) => group.textContent)
"""


def observe_crowd(stage: Stage, since: int = 0, **faults: Any) -> None:
    for at in range(since, since + 12, 4):
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


@pytest_asyncio.fixture(loop_scope="session")
async def crowded_stage() -> AsyncIterator[Stage]:
    """Give a console over a crowded loop."""
    async with Stage(suite=SUITE).serving() as serving:
        observe_crowd(serving, down=APIS[3:5], unreachable=WORKERS[2:4])
        for number in range(60):
            serving.put(f"{LONG}{number:03}", 1_234_567, long_snapshot())
        serving.put(LONG, 1_234_567, long_snapshot())
        for number in range(80):
            serving.dead_letters.record(serving.dead_letter("detail " * 100, REASONS[number % len(REASONS)]))
        yield serving


@pytest_asyncio.fixture(loop_scope="session")
async def crowded_visit(browser: Browser, crowded_stage: Stage) -> AsyncIterator[Visit]:
    """Give a page of that console."""
    async with visiting(browser, crowded_stage) as found:
        yield found
        found.check()


async def test_nothing_is_cut_off_or_overlaps(crowded_stage: Stage, browser: Browser) -> None:
    async with visiting(browser, crowded_stage, height=740) as visit:
        for route, width in product(VIEWS, WIDTHS):
            await visit.page.set_viewport_size({"width": width, "height": 740})
            await visit.go(route)
            await visit.until("document.querySelector('main').innerText.length > 200")
            where = f"{route} at {width} pixels"
            assert await visit.page.evaluate("document.documentElement.scrollWidth") == width, where
            assert await visit.page.evaluate(OUTSIDE) == [], where
            assert await visit.page.evaluate(OVERLAPPING) == [], where
        visit.check()


async def test_apis_that_are_down_come_first_and_the_others_are_summed(crowded_visit: Visit) -> None:
    await crowded_visit.go()
    rows = crowded_visit.page.locator("svg .api")
    assert [await rows.nth(number).get_attribute("data-node") for number in (0, 1)] == [
        f"api:{one}" for one in APIS[3:5]
    ]
    assert await rows.count() == 6
    assert "9 more" in (await rows.last.text_content() or "")


async def test_many_workers_are_folded_except_unreachable_ones(crowded_visit: Visit) -> None:
    await crowded_visit.go()
    rows = crowded_visit.page.locator(".processes tbody tr")
    assert await rows.count() == 1 + 1 + 2
    assert "24 × worker" in await rows.nth(1).inner_text()  # noqa: RUF001  # as the page writes it
    assert "2 unreachable" in await rows.nth(1).inner_text()
    button = crowded_visit.page.get_by_role("button", name="Show each worker")
    await button.focus()
    await crowded_visit.page.keyboard.press("Enter")
    assert await rows.count() == 1 + 1 + 24
    observe_crowd(crowded_visit.stage, 12)
    await crowded_visit.until("document.querySelector('.processes tr.sum').innerText.includes('all up')")
    assert await crowded_visit.page.evaluate("document.activeElement.textContent") == "Show fewer"


async def test_reasons_of_a_kind_are_grouped(crowded_visit: Visit) -> None:
    await crowded_visit.go()
    kinds = crowded_visit.page.locator(".problems > li")
    assert await kinds.evaluate_all("(all) => all.map((one) => one.dataset.kind)") == [
        "process_unreachable",
        "breaker_open",
    ]
    assert "4 problems" in await crowded_visit.text(".health-report h2")
    await kinds.first.get_by_text("and 1 more of this kind").click()
    observe_crowd(crowded_visit.stage, 12, down=APIS[3:5], unreachable=(*WORKERS[2:4], WORKERS[7]))
    await kinds.first.get_by_text("and 2 more of this kind").wait_for()
    assert await kinds.first.get_by_text(WORKERS[3].url).is_visible()  # opened details stay open


async def test_each_of_many_enrichments_is_counted(crowded_visit: Visit) -> None:
    await crowded_visit.go("#/states/flights")
    tally = crowded_visit.page.locator("td.tally").first
    await tally.wait_for()
    assert await tally.locator(".mark").all_inner_texts() == ["✓ 5", "✗ 5", "» 4"]
    assert await crowded_visit.page.locator("table.keys td.mark").count() == 0


async def test_rare_reasons_are_listed_on_demand(crowded_visit: Visit) -> None:
    await crowded_visit.go("#/dead_letters")
    reasons = crowded_visit.page.locator(".reason")
    await reasons.first.wait_for()
    assert await reasons.count() == 8
    await crowded_visit.page.get_by_role("button", name="Show 12 more reasons").click()
    assert await reasons.count() == 20
    await crowded_visit.page.get_by_role("button", name="Show 60 more").click()
    assert await crowded_visit.page.locator(".dead-letters > li").count() == 80


async def test_an_open_dead_letter_stays_open_while_others_arrive(crowded_visit: Visit) -> None:
    await crowded_visit.go("#/dead_letters")
    first = crowded_visit.page.locator(".dead-letters details").first
    await first.locator("summary").click()
    await first.locator("pre").focus()
    await crowded_visit.page.evaluate("getSelection().selectAllChildren(document.querySelector('details[open] pre'))")
    crowded_visit.stage.dead_letters.record(crowded_visit.stage.dead_letter("a new one"))
    await crowded_visit.page.locator(".dead-letters summary", has_text="a new one").wait_for()
    assert await crowded_visit.page.evaluate("document.activeElement.tagName") == "PRE"
    assert "detail" in await crowded_visit.page.evaluate("getSelection().toString()")


async def test_a_reason_without_recent_dead_letters_is_reported_as_older(crowded_visit: Visit) -> None:
    for number in range(200):
        crowded_visit.stage.dead_letters.record(crowded_visit.stage.dead_letter(f"{number}", "malformed"))
    await crowded_visit.go("#/dead_letters")
    reason = crowded_visit.page.get_by_role("button", name=REASONS[0])
    await reason.focus()
    await crowded_visit.page.keyboard.press("Enter")
    await crowded_visit.page.get_by_text(f"None of the latest 100 is {REASONS[0]}").wait_for()
    crowded_visit.stage.dead_letters.record(crowded_visit.stage.dead_letter("again", REASONS[0]))
    await crowded_visit.page.locator(".dead-letters summary", has_text="again").wait_for()
    assert await reason.evaluate("(one) => one === document.activeElement")


async def test_fewer_rows_are_requested_for_large_values(crowded_visit: Visit) -> None:
    for number in range(40):
        value = flight(number, 5) | {"enrichments": {}}
        value["state"]["large"] = "x" * 100_000
        crowded_visit.stage.put(f"!{number:02}", 1, value)
    await crowded_visit.go("#/states/flights")
    await crowded_visit.until("document.querySelectorAll('table.keys tbody tr').length === 9")


async def test_suggestions_request_keys_without_values(crowded_visit: Visit) -> None:
    answers: list[int] = []
    crowded_visit.page.on("response", lambda one: answers.append(one.status) if "fields=device_id" in one.url else None)
    await crowded_visit.go()
    await crowded_visit.page.keyboard.press("/")
    await crowded_visit.page.keyboard.type(LONG[:8])
    await crowded_visit.page.locator("#suggestions [role=option]").nth(9).wait_for()
    assert set(answers) == {200}
