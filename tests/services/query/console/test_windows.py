"""The windows of a state in a real Chromium: the chart of a key, and the top keys of a window."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from contracts import Suite
from examples.departures.application import departures
from tests.services.query.console.browser import visiting
from tests.services.query.console.observations import at_work
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
        for at in range(0, 60, 2):
            stage.observe(at_work(at, until=60))
        async with visiting(browser, stage) as found:
            yield found
            found.check()


def named(hour: int) -> str:
    """Return the name of a window in the page."""
    start = BEGIN + hour * HOUR
    return f"{start:%Y-%m-%d %H:%M} – {start + HOUR:%H:%M}"  # noqa: RUF001


async def test_a_key_has_its_windows_as_a_chart_and_a_table(windows: Visit) -> None:
    await windows.go("#/device/departures/JFK")
    await windows.until(f"{BARS} === 48")
    assert await windows.page.locator(".windows .u-wrap canvas").count() == 1
    assert await windows.text(".heading .window-status") == "open window"
    opened = await windows.page.locator(".windows tbody tr").all_text_contents()
    assert [one.endswith("open") for one in opened[:4]] == [True, True, False, False]
    assert "flights" in await windows.text(".readout")
    await windows.page.select_option("[aria-label='Windows at once']", "24")
    await windows.until(f"{BARS} === 24")


async def test_older_windows_are_a_page_away(windows: Visit) -> None:
    await windows.go("#/device/departures/JFK")
    await windows.until(f"{BARS} === 48")
    assert await windows.page.locator("text=Newer").is_disabled()
    await windows.page.click("text=Older")
    await windows.until(f"{BARS} === 12")
    assert await windows.page.locator("text=Older").is_disabled()
    await windows.page.click("text=Newer")
    await windows.until(f"{BARS} === 48")


async def test_a_chosen_window_appears_and_has_an_address(windows: Visit, windowed: WindowedState) -> None:
    await windows.go("#/device/departures/JFK")
    await windows.until(f"{BARS} === 48")
    await windows.page.click(".windows summary")
    await windows.page.click(f".windows tbody a >> text='{named(40)}'")
    wanted = windowed.windows["JFK"][BEGIN + 40 * HOUR]["state"]
    await windows.until(f"document.querySelector('.fields .value').textContent === '{wanted['flights']}'")
    assert await windows.text(".heading .window-status") == "closed window"
    assert await windows.text(".windows tr[aria-current] a") == named(40)
    start = iso(BEGIN + 40 * HOUR)
    assert (await windows.page.evaluate("decodeURIComponent(location.hash)")).endswith(f"/JFK/{start}")
    await windows.go("#/")
    await windows.go(f"#/device/departures/JFK/{start}")
    await windows.until(f"document.querySelector('.fields .value')?.textContent === '{wanted['flights']}'")
    await windows.page.click("text=Newest window")
    newest = windowed.windows["JFK"][BEGIN + (HOURS - 1) * HOUR]["state"]
    await windows.until(f"document.querySelector('.fields .value')?.textContent === '{newest['flights']}'")
    assert await windows.text(".heading .window-status") == "open window"


async def test_the_chart_has_the_window_of_the_address(windows: Visit) -> None:
    await windows.go(f"#/device/departures/JFK/{iso(BEGIN + 2 * HOUR)}")
    await windows.until(f"{BARS} === 15")
    assert await windows.page.locator(".windows tr[aria-current] a").text_content() == named(2)
    await windows.page.click("text=Newest window")
    await windows.until(f"{BARS} === 48")


async def test_a_click_on_a_bar_chooses_its_window(windows: Visit) -> None:
    await windows.go("#/device/departures/JFK")
    await windows.until(f"{BARS} === 48")
    box = await windows.page.locator(".windows .u-over").bounding_box()
    assert box
    await windows.page.mouse.click(box["x"] + box["width"] * 0.6 / 48, box["y"] + box["height"] / 2)
    await windows.until("document.querySelector('.windows tr[aria-current] a') !== null")
    oldest = named(HOURS - 48)
    assert await windows.page.locator(".windows tr[aria-current] a").text_content() == oldest
    assert (await windows.text(".readout")).startswith(f"{oldest}: flights ")


async def test_an_open_window_changes_live_and_the_next_one_follows(windows: Visit, windowed: WindowedState) -> None:
    await windows.go("#/device/departures/JFK")
    await windows.until(f"{BARS} === 48")
    windowed.put("JFK", HOURS - 1, counted(901), version=901)
    await windows.until("document.querySelector('.windows tbody .number').textContent === '901'")
    assert "flash" in (await windows.page.locator(".fields tr").first.get_attribute("class") or "")
    windowed.put("JFK", HOURS, counted(3), version=1)
    await windows.until("document.querySelector('.fields .value')?.textContent === '3'")
    assert await windows.page.locator(".versions li").count() == 1, "versions are those of the new window"
    assert await windows.page.locator(".windows tbody a").first.text_content() == named(HOURS)


async def test_the_top_keys_of_the_newest_window_are_in_order(windows: Visit, windowed: WindowedState) -> None:
    windowed.put("hidden", HOURS - 1, counted(1) | {"late": None})
    await windows.go("#/states/departures")
    await windows.page.locator(".ranking tbody tr").first.wait_for()
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
    await panel.get_by_label("Order by").select_option("state.late")
    await windows.until(
        "[...document.querySelectorAll('.ranking tbody a')].every((one) => one.textContent !== 'hidden')"
    )


async def test_the_windows_of_a_state_can_be_walked_through(windows: Visit) -> None:
    await windows.go("#/states/departures")
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


async def test_names_of_windows_and_keys_are_plain_text(windows: Visit, windowed: WindowedState) -> None:
    hostile = "<img src=x onerror='window.hurt=1'>"
    windowed.put(hostile, HOURS - 1, counted(5000))
    await windows.go("#/states/departures")
    await windows.until(f"document.querySelector('.ranking tbody a')?.textContent === {hostile!r}")
    await windows.page.click(".ranking tbody a")
    await windows.until(f"{BARS} === 1")
    assert await windows.page.evaluate("window.hurt") is None
