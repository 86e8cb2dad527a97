"""What records and dead letters contain in a real Chromium: it is shown as text, whatever it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from contracts.records.record import Reason
from services.query.console.dead_letters import OTHERS, UNREADABLE
from tests.services.query.console.browser import device
from tests.services.query.console.flights import flight

if TYPE_CHECKING:
    from tests.services.query.console.browser import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")
PROPERTIES = ("constructor", "__proto__", "toString")
"""Names that every object of JavaScript has."""
HOSTILE = "</td><script>window.hurt=1</script><img src=x onerror='window.hurt=1'><svg onload='window.hurt=1'>"
PARSED = "document.querySelectorAll('main script, main img, main svg[onload]').length"
REASONS = {*map(str, Reason), UNREADABLE, OTHERS}


async def test_html_and_names_of_object_properties_in_records_are_plain_text(visit: Visit) -> None:
    visit.stage.work()
    await visit.go()
    await _names_of_properties_are_plain_text(visit)
    await _html_is_plain_text(visit)


async def _names_of_properties_are_plain_text(visit: Visit) -> None:
    page, stage = visit.page, visit.stage
    for name in PROPERTIES:
        value = flight(1, 5)
        value["state"] = value["state"] | {name: f"the text of {name}"}
        value["enrichments"] = {"aircraft": {"version": 1, "status": name, "ts": "2013-01-01T10:00:00Z"}}
        stage.put(name, 1, value)
        stage.dead_letters.record(stage.dead_letter("head", name))
    for name in PROPERTIES:
        await visit.go(f"#/{name}")
        await page.get_by_text("This view does not exist").wait_for()
        await visit.go(device(name))
        await page.get_by_text(f"the text of {name}").first.wait_for()
        assert f"1 {name}" in await visit.text(".summary")
    await visit.go("#/states/flights")
    for name in PROPERTIES:
        await page.locator(f"tr[data-key='{name}']").wait_for()
    await visit.go("#/dead_letters")
    await page.locator(".reason").nth(len(PROPERTIES) - 1).wait_for()
    listed = await page.locator(".reason").all_inner_texts()
    assert sorted(one.split() for one in listed) == sorted([name, "1"] for name in PROPERTIES)
    assert "native code" not in await visit.text("body")


async def _html_is_plain_text(visit: Visit) -> None:
    page, stage, shown = visit.page, visit.stage, json.dumps(HOSTILE)
    value = flight(5, 6) | {"device_id": HOSTILE}
    value["state"] = value["state"] | {HOSTILE: HOSTILE, "status": HOSTILE, "airports": [HOSTILE]}
    value["enrichments"]["airline"] |= {"result": {HOSTILE: HOSTILE}}
    value["enrichments"]["aircraft"] = value["enrichments"]["airline"] | {"status": "failure", "reason": HOSTILE}
    stage.put(HOSTILE, 1, value)
    stage.dead_letters.record(stage.dead_letter(HOSTILE))
    for route in ("#/states/flights", "#/dead_letters", device(HOSTILE)):
        await visit.go(route)
        await visit.until(f"document.querySelector('main').innerText.includes({shown})")
        assert await page.evaluate(PARSED) == 0, route
    stage.put(HOSTILE, 2, value | {"state": {"status": HOSTILE * 2}})
    await visit.until(f"document.querySelector('main').innerText.includes({json.dumps(HOSTILE * 2)})")
    assert await page.evaluate(PARSED) == 0, "a change is shown"
    await page.keyboard.press("/")
    await page.locator("#suggestions li").first.wait_for()
    assert HOSTILE in await visit.text("#suggestions")
    assert await page.evaluate("window.hurt") is None


async def test_dead_letters_are_chosen_by_reason_and_every_reason_has_a_meaning(visit: Visit) -> None:
    page, stage = visit.page, visit.stage
    stage.work()
    for number in range(4):
        stage.dead_letters.record(stage.dead_letter(f"head {number}", "late" if number else "malformed"))
    await visit.go("#/dead_letters")
    await page.locator(".dead-letters > li").nth(3).wait_for()
    await page.get_by_role("button", name="malformed").click()
    await visit.until("document.querySelectorAll('.dead-letters > li').length === 1")
    await page.locator(".dead-letters summary").click()
    assert await visit.text(".dead-letters pre") == "head 0"

    for reason in REASONS - {"late", "malformed"}:
        stage.dead_letters.record(stage.dead_letter("head", reason))
    await page.get_by_role("button", name="more reasons").click()
    await page.locator(".reason").nth(len(REASONS) - 1).wait_for()
    listed = [one.split("\n") for one in await page.locator(".reason").all_inner_texts()]
    assert {one[0] for one in listed} == REASONS
    assert [one for one in listed if len([line for line in one if line.strip()]) < 3] == [], "without a meaning"
