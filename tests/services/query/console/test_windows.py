"""The windows of a state in a real Chromium: the chart of a key, and the top keys of a window."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from contracts import Suite
from examples.departures.application import departures
from tests.services.query.console.browser import visiting
from tests.services.query.console.stage import Stage
from tests.services.query.console.windowed import BEGIN, HOUR, WindowedState, counted, iso

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser

    from tests.services.query.console.browser import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")
HOURS = 60
AIRPORTS = ("ATL", "BOS", "CLT", "DEN", "DFW", "EWR", "IAD", "JFK", "LAX", "LGA", "MCO", "MIA", "ORD", "SFO")
BARS = "document.querySelectorAll('.windows tbody tr').length"
VALUE = "document.querySelector('.fields .value')?.textContent"


@pytest.fixture
def windowed() -> WindowedState:
    """Sixty hours of fourteen airports; the last two are open."""
    state, drawn = WindowedState(), random.Random(7)
    state.open_since(HOURS - 2)
    for hour in range(HOURS):
        for rank, airport in enumerate(AIRPORTS):
            quiet = 8 if (hour + 6) % 24 < 5 else 1
            flights = (70 - 4 * rank + drawn.randrange(20)) // quiet
            state.put(airport, hour, counted(flights, flights // 5, drawn.randrange(20, 300)), version=flights)
    return state


@pytest_asyncio.fixture(loop_scope="session")
async def windows(browser: Browser, windowed: WindowedState) -> AsyncIterator[Visit]:
    """Give a page over these windows."""
    async with Stage(instead=(windowed,), suite=Suite(departures)).serving() as stage:
        stage.work()
        async with visiting(browser, stage) as found:
            yield found
            found.check()


def named(hour: int) -> str:
    """Return the name of a window in the page."""
    start = BEGIN + hour * HOUR
    return f"{start:%Y-%m-%d %H:%M} – {start + HOUR:%H:%M}"  # noqa: RUF001


async def test_the_windows_of_a_key_are_paged_chosen_and_change_live(windows: Visit, windowed: WindowedState) -> None:
    await windows.go("#/device/departures/JFK")
    await windows.until(f"{BARS} === 48")
    await _page_through_chart_and_table(windows)
    await _choose_by_name_and_address(windows, windowed)
    await _choose_by_bar(windows)
    await windows.page.click("text=Newest window")
    await _see_the_next_window(windows, windowed)


async def _page_through_chart_and_table(windows: Visit) -> None:
    page = windows.page
    assert await page.locator(".windows .u-wrap canvas").count() == 1
    assert await windows.text(".heading .window-status") == "open window"
    opened = await page.locator(".windows tbody tr").all_text_contents()
    assert [one.endswith("open") for one in opened[:4]] == [True, True, False, False]
    assert "flights" in await windows.text(".readout")

    older, newer = page.locator("text=Older"), page.locator("text=Newer")
    assert await newer.is_disabled()
    await older.click()
    await windows.until(f"{BARS} === 12")
    assert await older.is_disabled()
    await newer.click()
    await windows.until(f"{BARS} === 48")
    await page.select_option("[aria-label='Windows at once']", "24")
    await windows.until(f"{BARS} === 24")
    await page.select_option("[aria-label='Windows at once']", "48")
    await windows.until(f"{BARS} === 48")


async def _choose_by_name_and_address(windows: Visit, windowed: WindowedState) -> None:
    page, current = windows.page, windows.page.locator(".windows tr[aria-current] a")
    newest = windowed.windows["JFK"][BEGIN + (HOURS - 1) * HOUR]["state"]
    await page.click(".windows summary")
    await page.click(f".windows tbody a >> text='{named(40)}'")
    wanted = windowed.windows["JFK"][BEGIN + 40 * HOUR]["state"]
    await windows.until(f"{VALUE} === '{wanted['flights']}'")
    assert await windows.text(".heading .window-status") == "closed window"
    assert await current.inner_text() == named(40)
    start = iso(BEGIN + 40 * HOUR)
    assert (await page.evaluate("decodeURIComponent(location.hash)")).endswith(f"/JFK/{start}")
    await windows.go("#/")
    await windows.go(f"#/device/departures/JFK/{start}")
    await windows.until(f"{VALUE} === '{wanted['flights']}'")
    await page.click("text=Newest window")
    await windows.until(f"{VALUE} === '{newest['flights']}'")
    assert await windows.text(".heading .window-status") == "open window"

    await windows.load(f"#/device/departures/JFK/{iso(BEGIN + 2 * HOUR)}")  # beyond the newest 48
    await windows.until(f"{BARS} === 15")
    assert await current.text_content() == named(2)
    await page.click("text=Newest window")
    await windows.until(f"{BARS} === 48")


async def _choose_by_bar(windows: Visit) -> None:
    page, current = windows.page, windows.page.locator(".windows tr[aria-current] a")
    box = await page.locator(".windows .u-over").bounding_box()
    assert box
    await page.mouse.click(box["x"] + box["width"] * 0.6 / 48, box["y"] + box["height"] / 2)
    await windows.until("document.querySelector('.windows tr[aria-current] a') !== null")
    oldest = named(HOURS - 48)
    assert await current.text_content() == oldest
    assert (await windows.text(".readout")).startswith(f"{oldest}: flights ")


async def _see_the_next_window(windows: Visit, windowed: WindowedState) -> None:
    page = windows.page
    await windows.until("document.querySelector('.heading .window-status')?.textContent === 'open window'")
    windowed.put("JFK", HOURS - 1, counted(901), version=901)
    await windows.until("document.querySelector('.windows tbody .number').textContent === '901'")
    marked = "document.querySelector('.fields tr')"  # it is drawn in another frame than the table of the windows
    await windows.until(f"{marked}.classList.contains('flash')", but=f"{marked}.className")
    windowed.put("JFK", HOURS, counted(3), version=1)
    await windows.until(f"{VALUE} === '3'")
    assert await page.locator(".versions li").count() == 1, "versions are those of the new window"
    assert await page.locator(".windows tbody a").first.text_content() == named(HOURS)


async def test_the_top_keys_of_each_window_are_in_order(windows: Visit, windowed: WindowedState) -> None:
    """Keys that have no number are left out, and names are plain text."""
    windowed.put("hidden", HOURS - 1, counted(1) | {"late": None})
    await windows.go("#/states/departures")
    await windows.page.locator(".ranking tbody tr").first.wait_for()
    await _has_the_newest_window(windows, windowed)
    await _walk_through_the_windows(windows)

    hostile = "<img src=x onerror='window.hurt=1'>"
    windowed.put(hostile, HOURS - 1, counted(10_000))
    await windows.go("#/states/departures")
    await windows.until(f"document.querySelector('.ranking tbody a')?.textContent === {hostile!r}")
    await windows.page.click(".ranking tbody a")
    await windows.until(f"{BARS} === 1")
    assert await windows.page.evaluate("window.hurt") is None


async def test_a_view_that_is_left_during_a_request_logs_no_error(windows: Visit) -> None:
    """The order of the top keys is changed, and the view is left before the response."""
    await windows.go("#/states/departures")
    await windows.page.locator(".ranking tbody tr").first.wait_for()
    await windows.page.route("**/windows/**", lambda _: None)  # these requests have no response
    async with windows.page.expect_request("**/windows/**"):
        await windows.page.get_by_label("Order by").select_option("state.late")
    await windows.go("#/")
    await windows.page.unroute("**/windows/**")
    await windows.load("#/")


async def _has_the_newest_window(windows: Visit, windowed: WindowedState) -> None:
    panel = windows.page.locator("[aria-label='Top keys']")
    assert named(HOURS - 1) in await panel.inner_text()
    assert await panel.locator(".window-status").inner_text() == "open window"
    start = BEGIN + (HOURS - 1) * HOUR
    found = {key: one[start]["state"]["flights"] for key, one in windowed.windows.items() if start in one}
    ordered = sorted(sorted(found), key=lambda key: -found[key])
    assert await panel.locator("tbody a").all_text_contents() == ordered
    assert await panel.locator(".ranked span").all_text_contents() == [str(found[key]) for key in ordered]
    windowed.put("SFO", HOURS - 1, counted(9000))
    await windows.until("document.querySelector('.ranking tbody a').textContent === 'SFO'")
    order = panel.get_by_label("Order by")
    await order.select_option("state.late")
    listed = "[...document.querySelectorAll('.ranking tbody a')]"
    await windows.until(f"{listed}.every((one) => one.textContent !== 'hidden')")
    await order.select_option("state.flights")


async def _walk_through_the_windows(windows: Visit) -> None:
    panel = windows.page.locator("[aria-label='Top keys']")
    await panel.get_by_text("Previous").click()
    await panel.get_by_text(named(HOURS - 2)).wait_for()
    await panel.get_by_text("Previous").click()
    await panel.get_by_text(named(HOURS - 3)).wait_for()
    assert await panel.locator(".window-status").inner_text() == "closed window"
    await panel.locator("tbody a").first.click()
    await windows.until("document.querySelector('.heading .window-status')?.textContent === 'closed window'")
    await windows.page.go_back()
    await panel.get_by_text("Newest").click()
    await panel.get_by_text(named(HOURS - 1)).wait_for()
    await windows.go(f"#/states/departures/{iso(BEGIN - HOUR)}")
    await panel.get_by_text("No key of this window has a number in state.flights.").wait_for()
