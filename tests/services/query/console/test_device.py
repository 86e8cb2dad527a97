"""The keys of a state and the page of one key in a real Chromium, while their records change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.services.query.console.browser import device
from tests.services.query.console.flights import flight, key_of

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

    from tests.services.query.console.browser import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")
NEWEST = ".versions li"


def field(page: Page, name: str) -> Locator:
    """Return the row of a field."""
    return page.locator("tr", has=page.get_by_role("rowheader", name=name, exact=True))


async def versions(page: Page) -> list[str]:
    """Return the names of the listed versions, as in ["v2", "v1"]."""
    return await page.locator(".versions > li > div > strong").all_inner_texts()


async def test_a_flight_appears_in_the_list_and_its_page_follows_its_records(visit: Visit) -> None:
    page, stage = visit.page, visit.stage
    stage.work()
    stage.fly(1, 2)
    await visit.go("#/states/flights")
    await page.get_by_role("link", name=key_of(1)).wait_for()
    stage.fly(2, 6)
    row = page.locator(f"tr[data-key='{key_of(2)}']")
    await row.wait_for()
    assert "landed" in await row.inner_text()
    assert await row.locator("td.mark.skipped").count() == 1
    assert await row.locator("td.mark.absence").count() == 1

    stage.fly(3, 3)
    await page.get_by_role("link", name=key_of(3)).click()
    status = field(page, "status")
    await status.get_by_text("scheduled").wait_for()
    aircraft = page.locator("[data-enrichment=aircraft]")
    await aircraft.locator(".why", has_text="waits for tailnum").wait_for()
    assert await page.locator(".timeline").count() == 0, "panels of series and coverage, which this state has not"

    stage.fly(3, 5)
    await status.get_by_text("departed").wait_for()
    assert "lately" in (await status.get_attribute("class") or "")
    assert "lately" not in (await field(page, "carrier").get_attribute("class") or "")
    assert await aircraft.get_attribute("data-status") == "failure"
    assert "500 Internal Server Error" in await aircraft.inner_text()
    assert "scheduled → departed" in await visit.text(NEWEST)

    stage.fly(3, 6)
    await status.get_by_text("landed", exact=True).wait_for()
    stage.fly(3, 2)  # an older version is never shown
    stage.fly(3, 7)
    await visit.sees(NEWEST, "v7")
    assert await versions(page) == ["v7", "v6", "v5", "v3"]
    assert "landed" in await status.inner_text()


async def test_a_device_is_rebuilt_removed_and_returns_and_another_is_seen_first(visit: Visit) -> None:
    page, stage = visit.page, visit.stage
    removed = page.get_by_text("The key was removed")
    stage.work()
    stage.fly(3, 6)
    await visit.go(device(key_of(3)))
    await page.get_by_text("landed", exact=True).first.wait_for()
    stage.fly(3, 2, epoch=1)
    await visit.sees(NEWEST, "v2")
    stage.fly(3, 7)  # of the earlier epoch
    stage.fly(3, 3, epoch=1)
    await visit.sees(NEWEST, "v3")
    assert await versions(page) == ["v3", "v2", "v6"]

    stage.remove(key_of(3))
    await removed.wait_for()
    assert await page.locator(".fields tr, .facts div, .enrichments li, .versions li").count() == 0
    stage.fly(3, 2)  # of an earlier epoch than before the removal
    await page.get_by_text("scheduled", exact=True).first.wait_for()
    await visit.sees(NEWEST, "v2")
    assert not await removed.is_visible()

    unseen = page.get_by_text("Never seen")
    await visit.go(device("absent"))
    await unseen.wait_for()
    stage.put("absent", 1, flight(1, 2) | {"device_id": "absent"})
    await page.get_by_text("scheduled", exact=True).first.wait_for()
    assert not await unseen.is_visible()
