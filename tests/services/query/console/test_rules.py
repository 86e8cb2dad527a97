"""The rules of a table in a real Chromium: written, tested, in conflict, and the alerts that follow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from services.query.http.table_routes import TableRoutes, tables_of
from tests.services.derive.alerted import Limit
from tests.services.query.alerting import SUITE, Sensors, WrittenRows, sensors
from tests.services.query.console.browser import visiting
from tests.services.query.console.stage import Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from playwright.async_api import Browser, Page

    from tests.services.query.console.browser import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")
WRITER, READER = "a-secret-of-an-operator", "a-secret-of-a-reader-of-all"


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """Return a file of two tokens that read everything, one of which writes rules."""
    listed = [{"name": "ann", "token": WRITER, "writes": ["limits"]}, {"name": "guest", "token": READER}]
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps({"tokens": listed}))
    return path


class Room:
    """A page over sensors whose rules and alerts are those of `sensors`."""

    def __init__(self, visit: Visit, sensors: Sensors) -> None:
        self.visit = visit
        self.page: Page = visit.page
        self.sensors = sensors

    async def enter(self, token: str) -> None:
        """Open the rules with a token."""
        await self.page.goto(f"{self.visit.stage.base}/console/icon.svg")  # a file of the origin that stores it
        await self.page.evaluate(f"sessionStorage.setItem('stateloop-token', {token!r})")
        await self.visit.go("#/rules/limits")
        await self.page.locator(".stream-status[data-status=live]").wait_for()

    async def rule(self, name: str) -> list[str]:
        """Return the cells of a rule, without its button."""
        row = self.page.locator(f"tr[data-key={name}]")
        return (await row.locator("th, td").all_inner_texts())[:-1]

    async def set(self, **values: str) -> None:
        """Fill fields of the form."""
        for name, value in values.items():
            await self.page.fill(f"#field-{name}", value)

    async def alerts(self, *keys: str) -> None:
        """Wait until the open alerts are those of these keys."""
        listed = "[...document.querySelectorAll('.alerts .key')].map((one) => one.textContent).sort()"
        await self.visit.until(f"JSON.stringify({listed}) === JSON.stringify({json.dumps(sorted(keys))})")


@pytest_asyncio.fixture(loop_scope="session")
async def room(browser: Browser, tmp_path: Path, tokens: Path) -> AsyncIterator[Room]:
    """Give a page over twelve sensors with the values 0 to 11, and a rule `high` with two open alerts."""
    declared = tables_of(SUITE)
    with sensors(tmp_path / "data", tokens=tokens) as (dependencies, written):
        written.put("high", Limit(high=10, low=10))
        for number in range(12):
            written.measure(f"sensor-{number}", number)
        rows = TableRoutes(declared, WrittenRows(written))
        stage = Stage(tokens=tokens, instead=(rows,), dependencies=dependencies, suite=SUITE, tables=declared)
        async with stage.serving():
            written.changed = stage.push.service.changed
            stage.work()
            async with visiting(browser, stage) as visit:
                yield Room(visit, written)
                visit.errors[:] = [error for error in visit.errors if "status of 4" not in error]  # expected problems
                visit.check()


async def test_a_rule_is_tested_saved_added_and_removed_and_its_alerts_follow(room: Room) -> None:
    await room.enter(WRITER)
    await room.alerts("sensor-10", "sensor-11")
    name, *values, _, author = await room.rule("high")
    assert (name, values, author) == ("high", ["*", "0 s", "10", "10", "2"], "ann")
    await room.page.click("[aria-label='Edit high']")
    await _test_without_saving(room)

    await room.set(high="8", low="8", keys="sensor-?")
    await room.page.click("text=Save")
    await room.alerts("sensor-8", "sensor-9")
    assert (await room.rule("high"))[1:6] == ["sensor-?", "0 s", "8", "8", "2"]
    assert room.sensors.rows["high"].value == Limit(keys="sensor-?", high=8, low=8)
    assert await room.page.locator(".editing").count() == 0
    room.sensors.measure("sensor-1", 9)
    await room.alerts("sensor-1", "sensor-8", "sensor-9")
    room.sensors.measure("sensor-8", 3)
    await room.alerts("sensor-1", "sensor-9")

    await room.page.click("text=Add a rule")
    await _correct_what_is_rejected(room)
    await _add_and_remove(room)


async def _test_without_saving(room: Room) -> None:
    await room.set(high="5", low="5", keys="sensor-?")
    await room.page.click(".test")
    await room.page.locator(".rule-test .figures").wait_for()
    figures = room.page.locator(".figures > div")
    assert [one.split("\n") for one in await figures.all_inner_texts()] == [
        ["alerts open", "5"],
        ["alerts close", "2"],
        ["are open then", "5"],
        ["wait for hold", "0"],
        ["states match keys", "10"],
    ]
    opening, closing = await room.page.locator(".tested-keys").all_inner_texts()
    assert opening.split() == ["Opens:", *(f"sensor-{number}" for number in range(5, 10))]
    assert closing.split() == ["Closes:", "sensor-10", "sensor-11"]
    assert room.sensors.rows["high"].value == Limit(high=10, low=10), "nothing is saved"
    await room.set(high="6")
    assert await room.page.locator(".rule-test").is_hidden(), "the result is of another rule"


async def _add_and_remove(room: Room) -> None:
    page = room.page
    await page.fill("#row-key", "zero/ä")
    await room.set(keys="sensor-0", high="0", low="0", hold="1.5")
    await page.click("text=Save")
    await page.locator("tr[data-key='zero/ä']").wait_for()
    written = room.sensors.rows["zero/ä"]
    value = {"keys": "sensor-0", "hold": "PT1.5S", "high": 0, "low": 0}
    assert (written.author, json.loads(written.value.model_dump_json())) == ("ann", value)
    await page.click("[aria-label='Edit zero/ä']")
    assert await page.input_value("#field-hold") == "1.5"
    await page.click("text=Remove")
    await page.click("text=Remove it?")
    await room.visit.until("document.querySelectorAll('.rules tbody tr').length === 1")
    assert room.sensors.rows.keys() == {"high"}


async def _correct_what_is_rejected(room: Room) -> None:
    page = room.page
    await page.click("text=Save")
    assert await room.visit.text("[data-field=''] .error") == "A name is required"
    await page.fill("#row-key", "bad")
    await room.set(high="much", hold="-3")
    await page.click("text=Save")
    await page.locator("#field-low-error:not([hidden])").wait_for()
    assert "integer" in await room.visit.text("#field-high-error")
    assert "required" in await room.visit.text("#field-low-error")
    assert "greater" in await room.visit.text("#field-hold-error")
    assert await page.locator("#field-keys[aria-invalid]").count() == 0
    await room.set(high="3", low="2", hold="")
    await page.click(".test")
    await page.locator(".rule-test .figures").wait_for()
    assert await page.locator("[aria-invalid]").count() == 0


async def test_a_conflict_shows_both_versions(room: Room) -> None:
    await room.enter(WRITER)
    await room.page.click("[aria-label='Edit high']")
    await room.set(high="7")
    room.sensors.put("high", Limit(high=11, low=9), "bob")
    conflict = room.page.locator(".conflict")
    await conflict.get_by_text("bob changed high").wait_for()
    assert "high theirs 11, yours 7" in await conflict.inner_text()
    await room.page.click("text=Save")  # based on the version that was opened
    await room.visit.until("!document.querySelector('.primary[type=submit]').disabled")
    assert room.sensors.rows["high"].author == "bob"
    await conflict.get_by_text("Load their version").click()
    assert [await room.page.input_value(f"#field-{name}") for name in ("high", "low")] == ["11", "9"]
    await room.set(low="8")
    await room.page.click("text=Save")
    await room.visit.until("document.querySelector('.editing') === null")
    assert room.sensors.rows["high"].value == Limit(high=11, low=8)
    await room.page.click("text=Add a rule")
    await room.page.fill("#row-key", "high")
    await room.set(high="1", low="1")
    await room.page.click("text=Save")
    await conflict.get_by_text("There is a row high already, by ann").wait_for()
    assert room.sensors.rows["high"].value == Limit(high=11, low=8)


async def test_a_token_without_the_right_is_read_only_and_names_are_plain_text(room: Room) -> None:
    page, hostile = room.page, "<img src=x onerror='window.hurt=1'>"
    room.sensors.put(hostile, Limit(keys=hostile, high=1, low=1), hostile)
    room.sensors.measure(hostile, 9)
    await room.enter(READER)
    await room.alerts("sensor-10", "sensor-11", hostile)
    assert await page.evaluate("window.hurt") is None

    assert await page.locator(".add").is_hidden()
    await page.get_by_text("Read-only: this token has no right to write limits.").wait_for()
    await page.click("[aria-label='Edit high']")
    await page.locator(".editing").wait_for()
    for one in ("[type=submit]", ".test", ".danger"):
        assert await page.locator(f".editing {one}").is_hidden(), one
    assert await page.is_disabled("#field-high")
    status = await page.evaluate(
        "fetch('/v1/tables/limits/high', {method: 'PUT', body: '{\"high\": 1, \"low\": 1}',"
        f"headers: {{Authorization: 'Bearer {READER}'}}}}).then((one) => one.status)"
    )
    assert (status, room.sensors.rows["high"].value) == (403, Limit(high=10, low=10))
