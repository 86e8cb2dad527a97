"""The overview in a real Chromium: it follows a loop from its start, and marks each fault at its node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.services.query.console.browser import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")
UNKNOWN = "–"  # noqa: RUF001  # what the page writes
REPORT = ".health-report"
API = "[data-node='api:reference']"


async def test_the_overview_follows_a_loop_from_its_start(visit: Visit) -> None:
    page, stage = visit.page, visit.stage
    await page.goto(stage.base)
    await visit.sees(REPORT, "retries")

    stage.work(4, rate=0)
    await visit.sees(REPORT, "Healthy")
    visit.check_only("503")  # the responses until the first observation
    await visit.sees(API, "0/s")
    await visit.go("#/states")
    await visit.sees("main", "There are no keys yet")
    await visit.go("#/dead_letters")
    await visit.sees("main", "every record was processed")

    stage.work(56)
    await visit.go()
    await visit.sees("[data-node=events]", "30.0")
    await visit.sees(REPORT, "Healthy")
    await visit.sees("[data-node=workers]", "2 of 2 up")
    await visit.sees(API, "p50")
    assert await page.locator(".u-wrap canvas").count() == 3, "charts"
    assert await page.locator(".processes tbody tr").count() == 4, "processes"
    assert await page.locator(".edge.idle").count() == 1, "only the edge to the dead letters is idle"

    stage.work(10, rate=900)
    await visit.until("/[1-9],\\d{3}/.test(document.querySelector('[data-node=snapshots]').textContent)")


async def test_faults_are_marked_at_their_nodes_and_reported(visit: Visit) -> None:
    page, stage = visit.page, visit.stage
    job = page.locator("[data-node=job]")
    stage.work()
    await visit.go()

    stage.work(12, breaker=2, queued=7)
    await visit.sees(API, "14 wait")
    assert await page.locator(API).get_attribute("data-breaker") == "open"

    stage.work(12, starts=0)
    await visit.sees(REPORT, "is starting")
    await visit.sees("[data-node=job]", "starting")
    assert await job.get_attribute("data-status") == "unhealthy"
    lag = page.locator(".chart", has_text="Lag, in records").locator(".u-value")
    assert await lag.nth(1).inner_text() == UNKNOWN, "not the value before the job was gone"
    assert await lag.nth(2).inner_text() != UNKNOWN

    stage.work(12)
    await visit.sees(REPORT, "Healthy")
    stage.work(12, job_away=1)
    await visit.sees(REPORT, "The job at http://127.0.0.1:9100 has not answered")
    await visit.sees(REPORT, "start it again")
    assert await job.get_attribute("data-status") == "unreachable"
    assert await page.locator("[data-node=workers]").get_attribute("data-status") == "healthy"
    await visit.sees(".processes tbody tr", "unreachable")
    await visit.sees(".health", "1 problem")

    stage.work(60, unmonitored={"job", "enrichment", "derive"})
    await visit.sees(REPORT, "Some components are not monitored")
    report = await visit.text(REPORT)
    assert "The job is not monitored" in report
    assert "Set STATELOOP_SCRAPE_TARGETS" in report
    assert "Healthy" not in report
    await visit.sees(".health", "not all monitored")
    await visit.sees(API, "no worker reports on it")
