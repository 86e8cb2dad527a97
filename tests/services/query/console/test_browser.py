"""The console in a real Chromium."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from contracts.records.record import Reason
from services.query.console.dead_letters import OTHERS, UNREADABLE
from tests.services.query.console.browser import visiting
from tests.services.query.console.flights import flight, key_of
from tests.services.query.console.observations import at_work
from tests.services.query.console.stage import Stage

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Browser

    from tests.services.query.console.browser import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")
POLLED_AGAIN = "performance.getEntriesByType('resource').filter((one) => one.name.includes('/v1/loop?')).length > 2"
VIEWS = ("", "#/states", "#/enrichments", "#/dead_letters", f"#/device/flights/{quote(key_of(0), safe='')}")
UNKNOWN = "–"  # noqa: RUF001  # what the page writes
HOSTILE = "</td><script>window.hurt=1</script><img src=x onerror='window.hurt=1'><svg onload='window.hurt=1'>"


def device(key: str) -> str:
    return f"#/device/flights/{quote(key, safe='')}"


def working(stage: Stage, seconds: int = 60, **overrides: float) -> None:
    for at in range(0, seconds, 2):
        stage.observe(at_work(at, until=seconds, **overrides))


@pytest.mark.parametrize("route", VIEWS)
async def test_each_view_loads_without_errors(visit: Visit, route: str) -> None:
    working(visit.stage)
    visit.stage.fly(0, 5)
    await visit.go(route)
    await visit.page.locator("main h1").wait_for(state="attached")
    await visit.until(POLLED_AGAIN)
    assert "healthy" in await visit.text(".health")


async def test_the_diagram_has_the_metrics(visit: Visit) -> None:
    working(visit.stage)
    await visit.go()
    assert "Healthy" in await visit.text(".health-report")
    await visit.until("document.querySelector('[data-node=events]').textContent.includes('30.0')")
    assert "2 of 2 up" in (await visit.page.locator("[data-node=workers]").text_content() or "")
    assert "p50" in (await visit.page.locator("[data-node='api:reference']").text_content() or "")
    assert await visit.page.locator(".u-wrap canvas").count() == 3
    assert await visit.page.locator(".processes tbody tr").count() == 4


async def test_the_diagram_is_updated(visit: Visit) -> None:
    working(visit.stage)
    await visit.go()
    assert await visit.page.locator(".edge.idle").count() == 1  # no dead letters
    for at in range(60, 70, 2):
        visit.stage.observe(at_work(at, rate=900))
    await visit.until("/[1-9],\\d{3}/.test(document.querySelector('[data-node=snapshots]').textContent)")


async def test_the_absence_of_data_is_reported(visit: Visit) -> None:
    visit.stage.observe(at_work(0, rate=0))
    visit.stage.observe(at_work(2, rate=0))
    await visit.go()
    assert "Healthy" in await visit.text(".health-report")
    assert "0/s" in (await visit.page.locator("[data-node='api:reference']").text_content() or "")
    await visit.go("#/states")
    await visit.until("document.querySelector('main').innerText.includes('There are no keys yet')")
    await visit.go("#/dead_letters")
    await visit.until("document.querySelector('main').innerText.includes('every record was processed')")


async def test_unmonitored_components_are_named_with_the_setting(visit: Visit) -> None:
    for at in range(0, 60, 2):
        visit.stage.observe(at_work(at, until=60, unmonitored={"job", "enrichment", "derive"}))
    await visit.go()
    report = await visit.text(".health-report")
    assert "Some components are not monitored" in report
    assert "The job is not monitored" in report
    assert "Set STATELOOP_SCRAPE_TARGETS" in report
    assert "Healthy" not in report
    assert "not all monitored" in await visit.text(".health")
    assert "no worker reports on it" in (await visit.page.locator("[data-node='api:reference']").text_content() or "")


async def test_the_page_waits_for_the_first_observation(stage: Stage, browser: Browser) -> None:
    async with visiting(browser, stage) as visit:
        await visit.page.goto(stage.base)
        await visit.until("document.querySelector('.health-report').innerText.includes('retries')")
        working(stage)
        await visit.until("document.querySelector('.health-report').innerText.includes('Healthy')")


async def test_an_unreachable_process_is_marked_at_its_node(visit: Visit) -> None:
    working(visit.stage)
    for at in range(60, 72, 2):
        visit.stage.observe(at_work(at, job_away=1))
    await visit.go()
    report = await visit.text(".health-report")
    assert "The job at http://127.0.0.1:9100 has not answered" in report
    assert "start it again" in report
    assert await visit.page.locator("[data-node=job]").get_attribute("data-status") == "unreachable"
    assert await visit.page.locator("[data-node=workers]").get_attribute("data-status") == "healthy"
    assert "unreachable" in await visit.text(".processes tbody tr")
    assert "1 problem" in await visit.text(".health")


async def test_a_starting_job_is_marked(visit: Visit) -> None:
    working(visit.stage)
    for at in range(60, 72, 2):
        visit.stage.observe(at_work(at, starts=0))
    await visit.go()
    assert "is starting" in await visit.text(".health-report")
    job = visit.page.locator("[data-node=job]")
    assert await job.get_attribute("data-status") == "unhealthy"
    assert "starting" in (await job.text_content() or "")
    lag = visit.page.locator(".chart", has_text="Lag, in records").locator(".u-value")
    assert await lag.nth(1).inner_text() == UNKNOWN  # not the value before the job was gone
    assert await lag.nth(2).inner_text() != UNKNOWN


async def test_an_open_breaker_is_marked_at_its_api(visit: Visit) -> None:
    working(visit.stage, breaker=2, queued=7)
    await visit.go()
    api = visit.page.locator("[data-node='api:reference']")
    assert await api.get_attribute("data-breaker") == "open"
    assert "14 wait" in (await api.text_content() or "")


async def test_new_flights_appear_live(visit: Visit) -> None:
    working(visit.stage)
    visit.stage.fly(1, 2)
    await visit.go("#/states/flights")
    await visit.page.get_by_role("link", name=key_of(1)).wait_for()
    visit.stage.fly(2, 6)
    row = visit.page.locator(f"tr[data-key='{key_of(2)}']")
    await row.wait_for()
    assert "landed" in await row.inner_text()
    assert await row.locator("td.mark.skipped").count() == 1
    assert await row.locator("td.mark.absence").count() == 1


async def test_a_device_is_updated_live(visit: Visit) -> None:
    working(visit.stage)
    visit.stage.fly(3, 3)
    await visit.go(device(key_of(3)))
    status = visit.page.locator("tr", has=visit.page.get_by_role("rowheader", name="status", exact=True))
    await status.get_by_text("scheduled").wait_for()
    await visit.page.locator("[data-enrichment=aircraft] .why", has_text="waits for tailnum").wait_for()
    visit.stage.fly(3, 5)
    await status.get_by_text("departed").wait_for()
    assert "lately" in (await status.get_attribute("class") or "")
    carrier = visit.page.locator("tr", has=visit.page.get_by_role("rowheader", name="carrier", exact=True))
    assert "lately" not in (await carrier.get_attribute("class") or "")
    failed = visit.page.locator("[data-enrichment=aircraft]")
    assert await failed.get_attribute("data-status") == "failure"
    assert "500 Internal Server Error" in await failed.inner_text()
    assert "scheduled → departed" in await visit.text(".versions li")


async def test_a_device_never_shows_an_older_version(visit: Visit) -> None:
    working(visit.stage)
    visit.stage.fly(3, 6)
    await visit.go(device(key_of(3)))
    await visit.page.get_by_text("landed", exact=True).first.wait_for()
    visit.stage.fly(3, 2)
    visit.stage.fly(3, 7)
    await visit.until("document.querySelector('.versions li').innerText.startsWith('v7')")
    assert [
        one[:2]
        for one in await visit.page.locator(".versions > li strong:first-child").all_inner_texts()
        if one[0] == "v"
    ] == [
        "v7",
        "v6",
    ]


async def test_a_rebuilt_device_replaces_its_earlier_epoch(visit: Visit) -> None:
    working(visit.stage)
    visit.stage.fly(3, 6)
    await visit.go(device(key_of(3)))
    await visit.page.get_by_text("landed", exact=True).first.wait_for()
    visit.stage.fly(3, 2, epoch=1)
    await visit.until("document.querySelector('.versions li').innerText.startsWith('v2')")
    visit.stage.fly(3, 7)
    visit.stage.fly(3, 3, epoch=1)
    await visit.until("document.querySelector('.versions li').innerText.startsWith('v3')")
    texts = await visit.page.locator(".versions > li strong:first-child").all_inner_texts()
    assert [one for one in texts if one[0] == "v"] == ["v3", "v2", "v6"]


async def test_a_device_that_was_never_seen_is_waited_for(visit: Visit) -> None:
    working(visit.stage)
    await visit.go(device("absent"))
    await visit.page.get_by_text("Never seen").wait_for()
    visit.stage.put("absent", 1, flight(1, 2) | {"device_id": "absent"})
    await visit.page.get_by_text("scheduled", exact=True).first.wait_for()
    assert (
        await visit.page.get_by_text("Never seen").count() == 0
        or not await visit.page.get_by_text("Never seen").is_visible()
    )


async def test_a_removed_device_disappears_and_may_return(visit: Visit) -> None:
    working(visit.stage)
    visit.stage.fly(3, 6)
    await visit.go(device(key_of(3)))
    await visit.page.get_by_text("landed", exact=True).first.wait_for()
    visit.stage.remove(key_of(3))
    await visit.page.get_by_text("The key was removed").wait_for()
    assert await visit.page.locator(".fields tr, .facts div, .enrichments li, .versions li").count() == 0
    visit.stage.fly(3, 2)  # an earlier version than before the removal
    await visit.page.get_by_text("scheduled", exact=True).first.wait_for()
    await visit.until("document.querySelector('.versions li')?.innerText.startsWith('v2')")
    assert not await visit.page.get_by_text("The key was removed").is_visible()


@pytest.mark.parametrize("name", ["constructor", "__proto__", "toString"])
async def test_names_of_object_properties_are_plain_text(visit: Visit, name: str) -> None:
    working(visit.stage)
    value = flight(1, 5)
    value["state"] = value["state"] | {name: "some text"}
    value["enrichments"] = {"aircraft": {"version": 1, "status": name, "ts": "2013-01-01T10:00:00Z"}}
    visit.stage.put(name, 1, value)
    visit.stage.dead_letters.record(visit.stage.dead_letter("head", name))
    await visit.go(f"#/{name}")
    await visit.page.get_by_text("This view does not exist").wait_for()
    await visit.go("#/states/flights")
    await visit.page.locator(f"tr[data-key='{name}']").wait_for()
    await visit.go(device(name))
    await visit.page.get_by_text("some text").first.wait_for()
    assert f"1 {name}" in await visit.text(".summary")
    await visit.go("#/dead_letters")
    assert (await visit.text(".reason")).split() == [name, "1"]
    assert "native code" not in await visit.text("body")


async def test_every_reason_of_a_dead_letter_has_a_meaning(visit: Visit) -> None:
    reasons = {*map(str, Reason), UNREADABLE, OTHERS}
    working(visit.stage)
    for reason in reasons:
        visit.stage.dead_letters.record(visit.stage.dead_letter("head", reason))
    await visit.go("#/dead_letters")
    await visit.page.get_by_role("button", name="more reasons").click()
    await visit.page.locator(".reason").nth(len(reasons) - 1).wait_for()
    listed = [(await one.inner_text()).split("\n") for one in await visit.page.locator(".reason").all()]
    assert {one[0] for one in listed} == reasons
    assert [one for one in listed if len([line for line in one if line.strip()]) < 3] == []


async def test_html_in_records_is_plain_text(visit: Visit) -> None:
    working(visit.stage)
    value = flight(5, 6) | {"device_id": HOSTILE}
    value["state"] = value["state"] | {HOSTILE: HOSTILE, "status": HOSTILE, "airports": [HOSTILE]}
    value["enrichments"]["airline"] |= {"result": {HOSTILE: HOSTILE}}
    value["enrichments"]["aircraft"] = value["enrichments"]["airline"] | {"status": "failure", "reason": HOSTILE}
    visit.stage.put(HOSTILE, 1, value)
    visit.stage.dead_letters.record(visit.stage.dead_letter(HOSTILE))
    for route in ("#/states/flights", device(HOSTILE), "#/dead_letters"):
        await visit.go(route)
        await visit.until(f"document.querySelector('main').innerText.includes({json.dumps(HOSTILE)})")
        assert (
            await visit.page.evaluate("document.querySelectorAll('main script, main img, main svg[onload]').length")
            == 0
        )
    visit.stage.put(HOSTILE, 2, value | {"state": {"status": HOSTILE * 2}})
    await visit.go(device(HOSTILE))
    await visit.page.keyboard.press("/")
    await visit.page.locator("#suggestions li").first.wait_for()
    assert HOSTILE in await visit.text("#suggestions")
    assert await visit.page.evaluate("window.hurt") is None


async def test_the_policy_forbids_parsing_html(visit: Visit) -> None:
    working(visit.stage)
    await visit.go()
    tried = "try { document.body.innerHTML = '<b>x</b>'; 'parsed' } catch (error) { error.name }"
    assert await visit.page.evaluate(tried) == "TypeError"
    assert any("TrustedHTML" in one for one in visit.errors)
    visit.errors.clear()


async def test_a_device_can_be_found_by_keyboard(visit: Visit) -> None:
    working(visit.stage)
    for number in range(12):
        visit.stage.fly(number, 2)
    await visit.go()
    keys = visit.page.keyboard
    await keys.press("/")
    await keys.type("2013-01-01/UA")
    await visit.until("document.querySelectorAll('#suggestions [role=option]').length === 2")
    await keys.press("ArrowDown")
    await keys.press("ArrowDown")
    assert await visit.page.locator("#search").get_attribute("aria-activedescendant") == "suggestion-1"
    await keys.press("Enter")
    wanted = sorted(key_of(number) for number in range(12) if "/UA" in key_of(number))[1]
    await visit.page.get_by_role("heading", name=wanted).wait_for()
    await keys.press("Escape")
    await visit.page.locator("table.keys").wait_for()
    await keys.press("4")
    await visit.page.locator("svg.graph").wait_for()
    await keys.press("?")
    assert await visit.page.locator("dialog.help").is_visible()
    await keys.press("Escape")
    await visit.until("!document.querySelector('dialog.help').open")
    await keys.press("1")
    await visit.page.locator("svg.loop").wait_for()


async def test_arrow_keys_move_between_rows(visit: Visit) -> None:
    working(visit.stage)
    for number in range(3):
        visit.stage.fly(number, 2)
    await visit.go("#/states/flights")
    first = visit.page.locator("table.keys tbody a").first
    await first.wait_for()
    await first.focus()
    await visit.page.keyboard.press("ArrowDown")
    second = sorted(key_of(number) for number in range(3))[1]
    assert await visit.page.evaluate("document.activeElement.textContent") == second


async def test_escape_closes_the_suggestions_first(visit: Visit) -> None:
    working(visit.stage)
    visit.stage.fly(1, 2)
    await visit.go()
    await visit.page.keyboard.press("/")
    await visit.page.locator("#suggestions li").first.wait_for()
    await visit.page.keyboard.press("Escape")
    assert not await visit.page.locator("#suggestions").is_visible()
    assert await visit.page.locator("#search").get_attribute("aria-expanded") == "false"


@pytest.mark.parametrize("route", VIEWS)
async def test_on_a_narrow_screen_nothing_is_cut_off(stage: Stage, browser: Browser, route: str) -> None:
    working(stage, breaker=2, worker_lag=123_456_789)
    for number in range(40):
        stage.fly(number, 6)
    stage.dead_letters.record(stage.dead_letter("x" * 900))
    async with visiting(browser, stage, width=360, height=740) as visit:
        await visit.go(route)
        await visit.page.locator("main h1").wait_for(state="attached")
        await visit.until("document.querySelector('main').innerText.length > 40")
        assert await visit.page.evaluate("document.documentElement.scrollWidth") == 360
        visit.check()


@pytest.mark.parametrize(("scheme", "page"), [("light", "rgb(244, 246, 251)"), ("dark", "rgb(10, 15, 28)")])
async def test_the_theme_follows_the_system_by_default(stage: Stage, browser: Browser, scheme: str, page: str) -> None:
    working(stage)
    background = "getComputedStyle(document.body).backgroundColor"
    async with visiting(browser, stage, scheme=scheme) as visit:
        await visit.go()
        assert await visit.page.evaluate(background) == page
        for _ in ("light", "dark"):
            await visit.page.keyboard.press("t")
        assert await visit.page.evaluate(background) == "rgb(10, 15, 28)"
        await visit.page.reload()
        assert await visit.page.evaluate(background) == "rgb(10, 15, 28)"


async def test_dead_letters_are_chosen_by_reason(visit: Visit) -> None:
    working(visit.stage)
    for number in range(4):
        visit.stage.dead_letters.record(visit.stage.dead_letter(f"head {number}", "late" if number else "malformed"))
    await visit.go("#/dead_letters")
    await visit.page.locator(".dead-letters > li").nth(3).wait_for()
    await visit.page.get_by_role("button", name="malformed").click()
    await visit.until("document.querySelectorAll('.dead-letters > li').length === 1")
    await visit.page.locator(".dead-letters summary").click()
    assert await visit.text(".dead-letters pre") == "head 0"


async def test_a_token_is_requested_and_stored_for_the_tab(browser: Browser, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    declared = [
        {"name": "all", "token": "a-token-for-all-of-it"},
        {"name": "some", "token": "a-token-for-some", "keys": ["2013"]},
    ]
    tokens.write_text(json.dumps({"tokens": declared}), encoding="utf-8")
    async with Stage(tokens=tokens).serving() as stage, visiting(browser, stage) as visit:
        working(stage)
        stage.fly(1, 3)
        stage.dead_letters.record(stage.dead_letter("a head"))
        await visit.page.goto(stage.base)
        await visit.page.get_by_label("Token").last.fill("a-wrong-token-it-is")
        await visit.page.keyboard.press("Enter")
        await visit.page.locator("dialog[open] input").fill("a-token-for-all-of-it")
        await visit.page.keyboard.press("Enter")
        await visit.page.locator(".health-report[data-status=healthy]").wait_for()
        await visit.go(device(key_of(1)))
        await visit.page.locator(".stream-status[data-status=live]").wait_for()
        await visit.page.reload()
        await visit.page.locator(".stream-status[data-status=live]").wait_for()
        assert visit.foreign == []


async def test_a_token_for_some_keys_sees_its_keys_and_no_totals(browser: Browser, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    scoped = {"name": "some", "token": "a-token-for-some", "states": ["flights"], "keys": [key_of(1)]}
    tokens.write_text(json.dumps({"tokens": [scoped]}), encoding="utf-8")
    async with Stage(tokens=tokens).serving() as stage, visiting(browser, stage) as visit:
        working(stage)
        stage.fly(1, 3)
        await visit.page.goto(stage.base)
        await visit.page.locator("dialog[open] input").fill("a-token-for-some")
        await visit.page.keyboard.press("Enter")
        await visit.until("document.querySelector('.health-report').innerText.includes('does not read all of them')")
        assert "The other views" in await visit.text(".health-report")
        await visit.page.goto(f"{stage.base}/{device(key_of(1))}")
        await visit.page.locator(".stream-status[data-status=live]").wait_for()
        # the graph is that of the declaration, without counts
        await visit.until("document.querySelector('[aria-label=Enrichments]').innerText.includes('waits for')")
