"""The console in a real Chromium: all views, the keyboard, and tokens."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.services.query.console.browser import Visit, device, visiting
from tests.services.query.console.flights import key_of
from tests.services.query.console.stage import Stage

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.asyncio(loop_scope="session")
POLLED_AGAIN = "performance.getEntriesByType('resource').filter((one) => one.name.includes('/v1/loop?')).length > 2"
VIEWS = ("", "#/states", "#/enrichments", "#/dead_letters", device(key_of(0)))
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(244, 246, 251)", "rgb(10, 15, 28)"


async def test_each_view_loads_without_errors_and_fits_a_narrow_screen(visit: Visit) -> None:
    page, stage = visit.page, visit.stage
    stage.work()
    stage.fly(0, 5)
    for route in VIEWS:
        await visit.load(route)
        await page.locator("main h1").wait_for(state="attached")
        await visit.until(POLLED_AGAIN)
        assert "healthy" in await visit.text(".health"), route
        visit.check()
    tabs = page.locator("nav[aria-label=Applications]")
    assert await tabs.count() == 1
    assert not await tabs.is_visible(), "a suite of one application has no tabs"
    link = page.get_by_role("link", name="Dead letters", exact=True)
    assert await link.get_attribute("href") == "#/dead_letters"

    stage.work(12, breaker=2, worker_lag=123_456_789)
    for number in range(40):
        stage.fly(number, 6)
    stage.dead_letters.record(stage.dead_letter("x" * 900))
    await page.set_viewport_size({"width": 360, "height": 740})
    for route in VIEWS:
        await visit.go(route)
        await page.locator("main h1").wait_for(state="attached")
        await visit.until("document.querySelector('main').innerText.length > 40")
        assert await page.evaluate("document.documentElement.scrollWidth") == 360, route

    tried = "try { document.body.innerHTML = '<b>x</b>'; 'parsed' } catch (error) { error.name }"
    assert await page.evaluate(tried) == "TypeError", "the policy of the page forbids to parse HTML"
    visit.check_only("TrustedHTML")


async def test_the_keyboard_finds_a_device_opens_the_views_and_chooses_a_theme(visit: Visit) -> None:
    page, keys, focused = visit.page, visit.page.keyboard, "document.activeElement.textContent"
    visit.stage.work()
    for number in range(12):
        visit.stage.fly(number, 2)
    await visit.go()
    await keys.press("/")
    await page.locator("#suggestions li").first.wait_for()
    await keys.press("Escape")  # closes the suggestions first
    assert not await page.locator("#suggestions").is_visible()
    assert await page.locator("#search").get_attribute("aria-expanded") == "false"

    await keys.press("Escape")
    await keys.press("/")
    await keys.insert_text("2013-01-01/UA")  # at once: before the former suggestions close
    await visit.until("document.querySelectorAll('#suggestions [role=option]').length === 2")
    await keys.press("ArrowDown")
    await keys.press("ArrowDown")
    assert await page.locator("#search").get_attribute("aria-activedescendant") == "suggestion-1"
    await keys.press("Enter")
    wanted = sorted(key_of(number) for number in range(12) if "/UA" in key_of(number))[1]
    await page.get_by_role("heading", name=wanted).wait_for()

    await keys.press("Escape")
    rows = page.locator("table.keys tbody a")
    await rows.first.focus()
    await keys.press("ArrowDown")
    assert await page.evaluate(focused) == sorted(key_of(number) for number in range(12))[1]

    await keys.press("4")
    await page.locator("svg.graph").wait_for()
    await keys.press("?")
    assert await page.locator("dialog.help").is_visible()
    await keys.press("Escape")
    await visit.until("!document.querySelector('dialog.help').open")
    await keys.press("1")
    await page.locator("svg.loop").wait_for()
    await _choose_a_theme(page)


async def _choose_a_theme(page: Page) -> None:
    assert await page.evaluate(BACKGROUND) == LIGHT, "the theme of the system"
    await page.emulate_media(color_scheme="dark")
    assert await page.evaluate(BACKGROUND) == DARK, "the theme of the system"
    await page.keyboard.press("t")
    assert await page.evaluate(BACKGROUND) == LIGHT
    await page.emulate_media(color_scheme="light")
    await page.keyboard.press("t")
    assert await page.evaluate(BACKGROUND) == DARK
    await page.reload()
    assert await page.evaluate(BACKGROUND) == DARK, "the choice is stored"


async def test_a_token_is_requested_stored_for_the_tab_and_limits_what_is_seen(
    browser: Browser, tmp_path: Path
) -> None:
    declared = [
        {"name": "all", "token": "a-token-for-all-of-it"},
        {"name": "some", "token": "a-token-for-some", "states": ["flights"], "keys": [key_of(1)]},
    ]
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"tokens": declared}), encoding="utf-8")
    async with Stage(tokens=tokens).serving() as stage:
        stage.work()
        stage.fly(1, 3)
        stage.dead_letters.record(stage.dead_letter("a head"))
        async with visiting(browser, stage) as visit:
            await _reads_all_of_it(visit)
            async with await visit.page.context.new_page() as other:
                await _reads_one_key(Visit(other, stage))


async def _reads_all_of_it(visit: Visit) -> None:
    page, live = visit.page, visit.page.locator(".stream-status[data-status=live]")
    await page.goto(visit.stage.base)
    await page.get_by_label("Token").last.fill("a-wrong-token-it-is")
    await page.keyboard.press("Enter")
    await page.locator("dialog[open] input").fill("a-token-for-all-of-it")
    await page.keyboard.press("Enter")
    await page.locator(".health-report[data-status=healthy]").wait_for()
    await visit.go(device(key_of(1)))
    await live.wait_for()
    await page.reload()
    await live.wait_for()
    assert visit.foreign == []


async def _reads_one_key(visit: Visit) -> None:
    page = visit.page
    await page.goto(visit.stage.base)
    await page.locator("dialog[open] input").fill("a-token-for-some")  # a token belongs to its tab
    await page.keyboard.press("Enter")
    await visit.sees(".health-report", "does not read all of them")
    await visit.sees(".health-report", "The other views")
    await page.goto(f"{visit.stage.base}/{device(key_of(1))}")
    await page.locator(".stream-status[data-status=live]").wait_for()
    await visit.sees("[aria-label=Enrichments]", "waits for")  # by the declaration, without counts
