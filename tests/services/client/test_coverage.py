"""The coverage of a key: the client reads it in parts and joins them, and the command prints it."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from services.client import Client, Interval, InvalidResponseError, KeyCoverage, NeverSeen
from services.tools.cli.__main__ import main
from tests.services.client.fake_service import body_response, problem

if TYPE_CHECKING:
    from tests.services.client.fake_service import Fake

STATE, KEY = "vitals", "ward/7"
PATH = "/v1/states/vitals/ward%2F7/coverage"
STARTS = [datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in range(0, 60, 10)]
LATER = {"later": 1}
"""A member that a later release adds."""
KINDS = ("gap", "data", "data", "gap", "open")


async def parts(fake: Fake, request: web.Request) -> web.StreamResponse:  # noqa: ARG001  # a fault takes both
    """Respond with two intervals in each response."""
    first = STARTS.index(datetime.fromisoformat(request.query.get("from", STARTS[0].isoformat())))
    last = min(first + 2, len(KINDS))
    intervals = [
        {"kind": KINDS[at], "from": STARTS[at].isoformat(), "to": STARTS[at + 1].isoformat(), **LATER}
        for at in range(first, last)
    ]
    body = {
        "state": STATE,
        "key": KEY,
        "field": "state.seen",
        "step_s": 0.5,
        "from": STARTS[first].isoformat(),
        "to": STARTS[last].isoformat(),
        "next": None if last == len(KINDS) else STARTS[last].isoformat(),
        "final_until": STARTS[3].isoformat(),
        "intervals": intervals,
        "lag": {"records": 0},
        "role": "owner",
        "instance": "q1",
    }
    return web.json_response(body | LATER)


async def test_the_parts_of_a_long_range_are_joined(fake: Fake) -> None:
    fake.always = parts
    async with Client(fake.url) as states:
        found = await states.coverage(STATE, KEY, end=STARTS[5], field="state.seen")
    assert isinstance(found, KeyCoverage)
    assert found.intervals == (
        Interval("gap", STARTS[0], STARTS[1]),
        Interval("data", STARTS[1], STARTS[3]),
        Interval("gap", STARTS[3], STARTS[4]),
        Interval("open", STARTS[4], STARTS[5]),
    )
    assert (found.start, found.end, found.final_until) == (STARTS[0], STARTS[5], STARTS[3])
    assert (found.step, found.total("data")) == (timedelta(seconds=0.5), timedelta(minutes=20))
    end = "to=2026-01-01T12%3A50%3A00%2B00%3A00&field=state.seen"
    rest = f"{PATH}?from=2026-01-01T12%3A20%3A00%2B00%3A00&{end}"
    assert fake.requests == [f"{PATH}?{end}", rest, rest.replace("A20%", "A40%")]


async def test_a_never_seen_key_has_no_coverage(fake: Fake) -> None:
    fake.always = body_response(json.dumps(problem("never_seen", 404)).encode(), 404)
    async with Client(fake.url) as states:
        assert isinstance(await states.coverage(STATE, KEY), NeverSeen)


@pytest.mark.parametrize("changed", [{"intervals": [{"kind": "full"}]}, {"from": "noon"}, {"step_s": None}])
async def test_a_malformed_response_raises(fake: Fake, changed: dict[str, Any]) -> None:
    body = {"from": "2026-01-01T12:00:00Z", "step_s": 1, "intervals": [], "next": None}
    fake.always = body_response(
        json.dumps({**body, "to": body["from"], "final_until": body["from"], **changed}).encode()
    )
    async with Client(fake.url) as states:
        with pytest.raises(InvalidResponseError):
            await states.coverage(STATE, KEY)


async def command(*arguments: str, url: str) -> int:
    return await asyncio.to_thread(main, ["coverage", STATE, KEY, *arguments, "--url", url])


async def test_the_command_writes_intervals_and_totals(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake.always = parts
    assert await command(url=fake.url) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[1] == ["2026-01-01", "12:00:00", "2026-01-01", "12:10:00", "gap", "0:10:00"]
    assert [row[-2:] for row in rows[5:] if row] == [["data", "0:20:00"], ["gap", "0:20:00"], ["open", "0:10:00"]]
    assert await command("--json", "--from", "2026-01-01T12:20:00+00:00", url=fake.url) == 0
    body = json.loads(capsys.readouterr().out)
    assert [one["kind"] for one in body["intervals"]] == ["data", "gap", "open"]
    fake.always = body_response(json.dumps(problem("never_seen", 404)).encode(), 404)
    assert await command(url=fake.url) == 3
