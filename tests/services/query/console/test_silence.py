"""The text of the page while the service sends nothing. Tests advance the clock of the page instead of waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
import pytest_asyncio

from tests.services.query.console.browser import visiting
from tests.services.query.console.flights import key_of
from tests.services.query.console.frozen import FreezableProxy
from tests.services.query.console.observations import at_work

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser

    from tests.services.query.console.browser import Visit
    from tests.services.query.console.stage import Stage

pytestmark = pytest.mark.asyncio(loop_scope="session")
STEP_MS = 1000
MINUTE_MS = 60_000
VIEWS = ("#/states/flights", "#/enrichments", "#/dead_letters")


@pytest_asyncio.fixture(loop_scope="session")
async def proxy(stage: Stage) -> AsyncIterator[FreezableProxy]:
    """Give a proxy to the stage, which pages use from then on."""
    for at in range(0, 20, 2):
        stage.observe(at_work(at, until=20))
    stage.fly(1, 5)
    async with FreezableProxy(stage.base).open() as found:
        stage.base = found.base
        yield found


@pytest_asyncio.fixture(loop_scope="session")
async def waiting(browser: Browser, stage: Stage, proxy: FreezableProxy) -> AsyncIterator[Visit]:
    """Give a page whose clock the test advances."""
    assert stage.base == proxy.base
    async with visiting(browser, stage) as found:
        await found.page.clock.install()
        yield found


async def pass_until(visit: Visit, condition: str, most_ms: int = MINUTE_MS) -> int:
    """Advance the clock of the page until this is true; return the milliseconds."""
    for passed in range(0, most_ms, STEP_MS):
        if await visit.page.evaluate(condition):
            return passed
        await visit.page.clock.run_for(STEP_MS)
    await visit.until(condition)
    return most_ms


def shows(selector: str, text: str) -> str:
    return f"document.querySelector('{selector}')?.innerText.includes('{text}')"


async def test_the_overview_reports_a_hanging_service_and_since_when(waiting: Visit, proxy: FreezableProxy) -> None:
    await waiting.go()
    assert "healthy" in await waiting.text(".health")
    proxy.flows.clear()
    assert await pass_until(waiting, shows(".health", "stale since")) <= 15_000
    assert "does not answer" in await waiting.text(".health-report")
    assert "The metrics shown are from" in await waiting.text(".health-report")
    assert await waiting.page.locator(".overview.stale").count() == 1
    proxy.flows.set()
    await pass_until(waiting, shows(".health-report", "Healthy"))
    assert "healthy" in await waiting.text(".health")
    assert await waiting.page.locator(".overview.stale").count() == 0


async def test_an_overview_opened_during_an_outage_reports_it_too(waiting: Visit, proxy: FreezableProxy) -> None:
    await waiting.go()
    proxy.flows.clear()
    await pass_until(waiting, shows(".health", "stale since"))
    await waiting.page.keyboard.press("3")
    await waiting.page.keyboard.press("1")
    await waiting.page.locator(".overview").wait_for()
    assert "The metrics shown are from" in await waiting.text(".health-report")
    assert await waiting.page.locator(".overview.stale").count() == 1
    proxy.flows.set()


async def test_a_service_that_no_longer_scrapes_is_reported(waiting: Visit, stage: Stage) -> None:
    await waiting.go()
    assert await pass_until(waiting, shows(".health-report", "no longer scrapes the loop")) >= 10_000
    assert "stale since" in await waiting.text(".health")
    stage.observe(at_work(22, until=20))
    await pass_until(waiting, shows(".health-report", "Healthy"))


async def test_a_device_with_a_silent_stream_is_not_live(waiting: Visit, proxy: FreezableProxy, stage: Stage) -> None:
    await waiting.go(f"#/device/flights/{quote(key_of(1), safe='')}")
    await waiting.page.locator(".stream-status[data-status=live]").wait_for()
    proxy.flows.clear()
    lost = "document.querySelector('.stream-status').dataset.status === 'waiting'"
    assert await pass_until(waiting, lost) <= 20_000
    assert "stale since" in await waiting.text(".stream-status")
    stage.fly(1, 6)
    proxy.flows.set()
    await pass_until(waiting, shows("main", "landed"))
    await waiting.page.locator(".stream-status[data-status=live]").wait_for()


async def test_a_key_that_returned_during_an_outage_appears(
    waiting: Visit, proxy: FreezableProxy, stage: Stage
) -> None:
    await waiting.go(f"#/device/flights/{quote(key_of(1), safe='')}")
    await waiting.until(shows(".versions", "v5"))
    stage.remove(key_of(1))
    await waiting.until(shows("main", "The key was removed"))
    proxy.flows.clear()
    await pass_until(waiting, "document.querySelector('.stream-status').dataset.status === 'waiting'")
    stage.fly(1, 2)
    proxy.flows.set()
    await pass_until(waiting, shows(".versions", "v2"))


async def test_a_stream_with_data_is_not_reconnected(waiting: Visit, stage: Stage) -> None:
    watches: list[str] = []
    waiting.page.on("request", lambda one: watches.append(one.url) if one.url.endswith("/watch") else None)
    await waiting.go(f"#/device/flights/{quote(key_of(1), safe='')}")
    await waiting.until(shows(".versions", "v5"))
    for version in range(6, 10):
        await waiting.page.clock.run_for(10_000)
        stage.fly(1, version)
        await waiting.until(shows(".versions", f"v{version}"))
    assert len(watches) == 1


@pytest.mark.parametrize("route", VIEWS)
async def test_each_view_reports_since_when_the_service_hangs(
    waiting: Visit, proxy: FreezableProxy, route: str
) -> None:
    await waiting.go(route)
    await waiting.page.locator("main :is(table, .reasons)").first.wait_for(state="attached")
    await pass_until(waiting, "document.querySelector('main').innerText.length > 60")
    proxy.flows.clear()
    await pass_until(waiting, shows("main", "does not answer: stale since"))
    proxy.flows.set()
    await pass_until(waiting, "!document.querySelector('main').innerText.includes('stale since')")
