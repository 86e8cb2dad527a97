"""The text of the page while the service sends nothing. Tests advance the clock of the page instead of waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.services.query.console.browser import WITHIN_MS, Visit, device
from tests.services.query.console.flights import key_of
from tests.services.query.console.frozen import FreezableProxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser

    from tests.services.query.console.stage import Stage

pytestmark = pytest.mark.asyncio(loop_scope="session")
STEP_MS = 1000
MINUTE_MS = 60_000


@pytest_asyncio.fixture(loop_scope="session")
async def proxy(stage: Stage) -> AsyncIterator[FreezableProxy]:
    """Give a proxy to the stage, which pages use from then on."""
    stage.work()
    stage.fly(1, 5)
    async with FreezableProxy(stage.base).open() as found:
        stage.base = found.base
        yield found


@pytest_asyncio.fixture(loop_scope="session")
async def waiting(browser: Browser, stage: Stage, proxy: FreezableProxy) -> AsyncIterator[Visit]:
    """Give a page whose clock the test advances."""
    assert stage.base == proxy.base
    async with await browser.new_context(reduced_motion="reduce") as own, await own.new_page() as page:
        page.set_default_timeout(WITHIN_MS)
        await page.clock.install()  # in all pages of its context
        yield Visit(page, stage)


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


VIEWS = {
    "#/states/flights": "document.querySelector('main table.keys tbody tr') !== null",
    "#/enrichments": "document.querySelector('main table tbody tr') !== null",
    "#/dead_letters": shows("main", "has no dead letters"),
}
"""Whether each view has its first data: before, it has nothing that could be stale."""
WAITS = "document.querySelector('.stream-status').dataset.status === 'waiting'"


async def test_the_overview_reports_since_when_its_metrics_are_stale(
    waiting: Visit, proxy: FreezableProxy, stage: Stage
) -> None:
    page = waiting.page
    await waiting.go()
    assert "healthy" in await waiting.text(".health")
    proxy.flows.clear()
    assert await pass_until(waiting, shows(".health", "stale since")) <= 15_000, "the service hangs"
    assert "does not answer" in await waiting.text(".health-report")
    assert "The metrics shown are from" in await waiting.text(".health-report")
    assert await page.locator(".overview.stale").count() == 1

    await page.keyboard.press("3")
    await page.keyboard.press("1")
    await page.locator(".overview").wait_for()
    assert "The metrics shown are from" in await waiting.text(".health-report"), "an overview opened meanwhile"
    assert await page.locator(".overview.stale").count() == 1

    stage.work(2)
    proxy.flows.set()
    await pass_until(waiting, shows(".health-report", "Healthy"))
    assert "healthy" in await waiting.text(".health")
    assert await page.locator(".overview.stale").count() == 0

    assert await pass_until(waiting, shows(".health-report", "no longer scrapes the loop")) >= 10_000
    assert "stale since" in await waiting.text(".health")
    stage.work(2)
    await pass_until(waiting, shows(".health-report", "Healthy"))


async def test_a_device_is_live_only_while_its_stream_has_data(
    waiting: Visit, proxy: FreezableProxy, stage: Stage
) -> None:
    live, watches = waiting.page.locator(".stream-status[data-status=live]"), list[str]()
    waiting.page.on("request", lambda one: watches.append(one.url) if one.url.endswith("/watch") else None)
    await waiting.go(device(key_of(1)))
    await live.wait_for()
    proxy.flows.clear()
    assert await pass_until(waiting, WAITS) <= 20_000
    assert "stale since" in await waiting.text(".stream-status")
    stage.fly(1, 6)
    proxy.flows.set()
    await pass_until(waiting, shows("main", "landed"))
    await live.wait_for()

    connected = len(watches)
    for version in range(7, 11):
        await waiting.page.clock.run_for(10_000)
        stage.fly(1, version)
        await waiting.until(shows(".versions", f"v{version}"))
    assert len(watches) == connected, "a stream with data is not reconnected"

    stage.remove(key_of(1))
    await waiting.until(shows("main", "The key was removed"))
    proxy.flows.clear()
    await pass_until(waiting, WAITS)
    stage.fly(1, 2)  # the key returned during an outage
    proxy.flows.set()
    await pass_until(waiting, shows(".versions", "v2"))
    await live.wait_for()


async def test_each_view_reports_since_when_the_service_hangs(waiting: Visit, proxy: FreezableProxy) -> None:
    for route, has_data in VIEWS.items():
        await waiting.go(route)
        await pass_until(waiting, has_data)
        proxy.flows.clear()
        await pass_until(waiting, shows("main", "does not answer: stale since"))
        proxy.flows.set()
        await pass_until(waiting, "!document.querySelector('main').innerText.includes('stale since')")
