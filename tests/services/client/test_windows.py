"""The windows of a windowed state: one, several, all keys of one, and watches of them."""

from __future__ import annotations

import asyncio
import json
import math
from contextlib import aclosing
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from services.client import (
    Client,
    Found,
    InvalidResponseError,
    Left,
    NeverSeen,
    NoWindow,
    Removed,
    StaleReadError,
    WatchFilter,
)
from services.tools.cli.__main__ import main
from tests.services.client.fake_service import at_offset, body_response, described, entry, problem, shortest_attempt
from tests.services.client.streaming import message
from tests.services.client.test_watch import following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.services.client.fake_service import Fake
    from tests.services.client.streaming import Streaming

STATE = "departures"
NEW_YORK = timezone(timedelta(hours=-5))
AT = datetime(2013, 1, 1, 8, 30, tzinfo=NEW_YORK)
HOURS = [datetime(2013, 1, 1, hour, tzinfo=UTC) for hour in (12, 13, 14)]


def window(key: str, start: datetime, version: int = 1, *, is_open: bool = False, **fields: Any) -> dict[str, Any]:
    """Return the body of a response about a window. Its records are before those of later windows."""
    return {
        **at_offset(entry(key, version, start.isoformat(), STATE, **fields), 100 * start.hour + version),
        "window_end": (start + timedelta(hours=1)).isoformat(),
        "is_open": is_open,
    }


def answered(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "role": "owner", "instance": "q1"}


async def listed(items: AsyncIterator[Found[Any]]) -> list[tuple[str, datetime | None]]:
    return [(item.key, item.window_start) async for item in items]


async def test_the_window_at_a_time(fake: Fake) -> None:
    fake.put(window("JFK", HOURS[1], 25))
    async with Client(fake.url) as states:
        found = await states.get(STATE, "JFK", at=AT)
        await states.versions(STATE, "JFK", at=AT)
    assert isinstance(found, Found)
    assert (found.window_start, found.window_end, found.is_open) == (HOURS[1], HOURS[2], False)
    query = "?at=2013-01-01T08%3A30%3A00-05%3A00"
    assert fake.requests == [f"/v1/states/departures/JFK{query}", f"/v1/states/departures/JFK/versions{query}"]


async def test_a_state_with_a_lifetime_has_no_end_and_is_not_open(fake: Fake) -> None:
    fake.put(entry("k", 1))
    async with Client(fake.url) as states:
        found = await states.get("flights", "k")
    assert isinstance(found, Found)
    assert (found.window_end, found.is_open) == (None, None)


async def test_a_time_without_a_window_is_a_result(fake: Fake) -> None:
    fake.put({"state": STATE, "key": "JFK", **problem("no_window", 404)})
    async with Client(fake.url) as states:
        assert isinstance(await states.get(STATE, "JFK", at=AT), NoWindow)
        fake.put({"state": STATE, "key": "JFK", **problem("never_seen", 404)})
        assert isinstance(await states.get(STATE, "JFK", at=AT), NeverSeen)


async def test_an_older_window_is_returned_after_a_newer_one_but_no_older_version_of_it(fake: Fake) -> None:
    async with Client(fake.url) as states:
        for start in (HOURS[2], HOURS[1]):
            fake.put(window("JFK", start, 7))
            assert isinstance(await states.get(STATE, "JFK", at=start), Found)
        fake.put(window("JFK", HOURS[2], 7))
        assert isinstance(await states.get(STATE, "JFK"), Found)
        fake.put(window("JFK", HOURS[1], 8))
        assert isinstance(await states.get(STATE, "JFK", at=AT), Found)
        assert [type(one) for one in await states.get_many(STATE, ["JFK"], at=AT)] == [Found]
        with shortest_attempt(math.inf), pytest.raises(StaleReadError):
            await states.get(STATE, "JFK")
        fake.put(window("JFK", HOURS[1], 7))
        with shortest_attempt(math.inf), pytest.raises(StaleReadError):
            await states.get(STATE, "JFK", at=AT)
        with shortest_attempt(math.inf), pytest.raises(StaleReadError):
            await states.get_many(STATE, ["JFK"], at=AT)


async def test_many_keys_at_a_time(fake: Fake) -> None:
    fake.put(window("JFK", HOURS[1]), window("LGA", HOURS[1]))
    bodies = []

    async def keep(other: Fake, request: Any) -> Any:
        bodies.append(await request.json())
        return await other.correct_response(request)

    fake.always = keep
    async with Client(fake.url) as states:
        assert len(await states.get_many(STATE, ["JFK", "LGA"], at=AT)) == 2
    assert bodies == [{"keys": ["JFK", "LGA"], "at": "2013-01-01T08:30:00-05:00"}]


async def test_a_range_of_windows_of_a_key(fake: Fake) -> None:
    fake.windows = [window(key, start) for key in ("JFK", "LGA") for start in HOURS]
    async with Client(fake.url) as states:
        found = await listed(
            states.windows(STATE, "JFK", start=AT, end=HOURS[2], newest_first=True, fields=["state.flights"])
        )
        assert await listed(states.windows(STATE, "EWR")) == []
    assert found == [("JFK", start) for start in HOURS]
    first, empty, last, other = fake.requests
    assert first == (
        "/v1/states/departures/JFK/windows?from=2013-01-01T08%3A30%3A00-05%3A00"
        "&to=2013-01-01T14%3A00%3A00%2B00%3A00&order=desc&fields=state.flights"
    )
    assert (empty, last) == (f"{first}&cursor=2", f"{first}&cursor=2-empty")
    assert other == "/v1/states/departures/EWR/windows"


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
async def test_the_first_few_windows(fake: Fake, limit: int) -> None:
    fake.windows = [window("JFK", start) for start in HOURS]
    async with Client(fake.url) as states:
        found = await listed(states.windows(STATE, "JFK", limit=limit))
    assert found == [("JFK", start) for start in HOURS[:limit]]
    assert fake.requests[0] == f"/v1/states/departures/JFK/windows?limit={limit}"


async def test_the_keys_of_one_window(fake: Fake) -> None:
    fake.windows = [window(key, HOURS[1]) for key in ("EWR", "JFK", "LGA")]
    async with Client(fake.url) as states:
        found = await listed(
            states.window_items(STATE, AT, prefix="E", where={"state.a": "b"}, order_by="-state.flights", limit=20)
        )
        await listed(states.window_items(STATE))
    assert found == [(key, HOURS[1]) for key in ("EWR", "JFK", "LGA")]
    assert fake.requests[0] == (
        "/v1/states/departures/windows/2013-01-01T08%3A30%3A00-05%3A00"
        "?prefix=E&order_by=-state.flights&limit=20&where=state.a%3Ab"
    )
    assert fake.requests[3] == "/v1/states/departures/windows/now"


@pytest.mark.parametrize("body", [b"{}", b'{"windows": [{}]}', b'{"items": 1}', b"[]"])
async def test_malformed_pages_raise(fake: Fake, body: bytes) -> None:
    fake.always = body_response(body)
    async with Client(fake.url) as states:
        for pages in (states.windows(STATE, "JFK"), states.window_items(STATE)):
            with pytest.raises(InvalidResponseError):
                await listed(pages)


async def test_a_state_has_its_window(fake: Fake) -> None:
    fake.always = body_response(
        json.dumps(
            {"states": [described("flights"), {**described(STATE), "window_s": 3600.0, "every_s": 900.0}]}
        ).encode()
    )
    async with Client(fake.url) as states:
        flights, departures = await states.states()
    assert (flights.window, flights.every) == (None, None)
    assert (departures.window, departures.every) == (timedelta(hours=1), timedelta(minutes=15))


async def test_a_watch_of_all_windows_delivers_each_version_of_each_once(streaming: Streaming) -> None:
    sent = [(HOURS[1], 1), (HOURS[0], 5), (HOURS[1], 2), (HOURS[0], 5), (HOURS[0], 4), (HOURS[0], 6)]
    async with Client(streaming.url) as states, aclosing(states.watch(STATE, "JFK", window="all")) as updates:
        reading = asyncio.create_task(following(updates, 6))
        opened = await streaming.connection(0)
        opened.send(*(message(answered(window("JFK", start, version))) for start, version in sent))
        place = {"state": STATE, "key": "JFK", "window_start": HOURS[0].isoformat()}
        opened.send(message(place, kind="removed"), message(answered(window("JFK", HOURS[0], 1))))
        found = await reading
    assert opened.received[0]["window"] == "all"
    assert [(one.window_start, getattr(one, "version", None)) for one in found] == [
        (HOURS[1], 1),
        (HOURS[0], 5),
        (HOURS[1], 2),
        (HOURS[0], 6),
        (HOURS[0], None),
        (HOURS[0], 1),
    ]
    assert found[4] == Removed(STATE, "JFK", HOURS[0])


async def test_a_watch_of_the_newest_window_never_goes_back(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch(STATE, "JFK")) as updates:
        reading = asyncio.create_task(following(updates, 3))
        opened = await streaming.connection(0)
        for start, version in [(HOURS[0], 5), (HOURS[1], 1), (HOURS[0], 6), (HOURS[1], 2)]:
            opened.send(message(answered(window("JFK", start, version))))
        found = await reading
    assert "window" not in opened.received[0]
    assert [one.version for one in found] == [5, 1, 2]


@pytest.mark.parametrize("gone", ["removed", "left"])
async def test_a_watch_goes_back_after_a_removal(streaming: Streaming, gone: str) -> None:
    place = {"state": STATE, "key": "JFK", "window_start": HOURS[1].isoformat()}
    filtered = WatchFilter(STATE, where={"a": "b"})
    async with Client(streaming.url) as states, aclosing(states.watch_many(filtered)) as updates:
        reading = asyncio.create_task(following(updates, 4))
        opened = await streaming.connection(0)
        opened.send(message(answered(window("JFK", HOURS[1], 5))), message(place, kind=gone))
        former = answered(window("JFK", HOURS[0], 6))
        written_after = answered(at_offset(window("JFK", HOURS[0], 7), 2_000))
        opened.send(message(former), message(written_after), message(former))
        opened.send(message(answered(at_offset(window("JFK", HOURS[1], 6), 2_001))))
        first, _, *others = await reading
    expected = {"removed": [6, 7], "left": [7, 6]}  # that it has left says nothing of earlier windows
    assert [first.version, *(one.version for one in others)] == [5, *expected[gone]]


async def test_a_watch_goes_back_after_the_removal_of_a_window_that_it_never_had(streaming: Streaming) -> None:
    places = [{"state": STATE, "key": "JFK", "window_start": hour.isoformat()} for hour in HOURS]
    filtered = WatchFilter(STATE, where={"a": "b"})
    async with Client(streaming.url) as states, aclosing(states.watch_many(filtered)) as updates:
        reading = asyncio.create_task(following(updates, 4))
        opened = await streaming.connection(0)
        opened.send(message(answered(window("JFK", HOURS[2]))), message(places[2], kind="left"))
        opened.send(message(places[1], kind="removed"), message(answered(window("JFK", HOURS[0]))))
        *_, last = await reading
    assert last.window_start == HOURS[0]


async def test_a_watch_of_many_keys_of_one_window(streaming: Streaming) -> None:
    filters = WatchFilter(STATE, window=AT), WatchFilter("flights", key="k")
    async with Client(streaming.url) as states, aclosing(states.watch_many(*filters)) as updates:
        reading = asyncio.create_task(following(updates, 3))
        opened = await streaming.connection(0)
        place = {"state": STATE, "key": "LGA", "window_start": HOURS[1].isoformat()}
        opened.send(
            message(answered(window("JFK", HOURS[1])), "0"),
            message(place, "0", kind="left"),
            message(answered(entry("k", 1)), "1"),
        )
        found = await reading
    assert [one.get("window") for one in opened.received] == ["2013-01-01T08:30:00-05:00", None]
    assert found[1] == Left(STATE, "LGA", HOURS[1])


async def command(*arguments: str, url: str) -> int:
    return await asyncio.to_thread(main, [*arguments, "--url", url])


async def test_get_shows_the_window_at_a_time(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake.put(window("JFK", HOURS[1], 25, flights=25))
    assert await command("get", STATE, "JFK", "--at", "2013-01-01T08:30:00-05:00", url=fake.url) == 0
    assert "JFK  version 25  1.2 s old  2013-01-01 13:00:00 to 14:00:00 UTC  closed" in capsys.readouterr().out
    fake.put({"state": STATE, "key": "JFK", **problem("no_window", 404, key="JFK")})
    assert await command("get", STATE, "JFK", "--at", "now", url=fake.url) == 3
    assert "JFK  it is no_window" in capsys.readouterr().out
    assert await command("get", STATE, "JFK", "--at", "now", "--json", url=fake.url) == 3
    assert json.loads(capsys.readouterr().out)["result"] == "no_window"


async def test_get_shows_a_range_as_a_table(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake.windows = [
        window("JFK", start, number, is_open=number == 3, flights=10 * number, mean_delay=number / 3, delays=[1.0, 2.5])
        for number, start in enumerate(HOURS, 1)
    ]
    given = ("get", STATE, "JFK", "--from", "2013-01-01T07:00:00-05:00")
    assert await command(*given, url=fake.url) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["window", "(UTC)", "version", "status", "flights", "mean_delay", "delays"]
    assert rows[1] == ["2013-01-01", "12:00:00", "1", "landed", "10", "0.333333", "1,", "2.5"]
    assert rows[3] == ["2013-01-01", "14:00:00", "open", "3", "landed", "30", "1", "1,", "2.5"]
    assert await command(*given, "--limit", "1", "--fields", "state.flights", url=fake.url) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["window", "(UTC)", "version", "flights"],
        ["2013-01-01", "12:00:00", "1", "10"],
    ]


@pytest.mark.parametrize(("columns", "lines"), [("80", 4), ("", 4)])
async def test_a_table_of_windows_breaks_no_header_and_no_line_of_a_pipe(
    fake: Fake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str, lines: int
) -> None:
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    else:
        monkeypatch.delenv("COLUMNS", raising=False)
    names: dict[str, Any] = {f"measurement_{number}": number for number in range(8)}
    fake.windows = [window("JFK", start, number, flights=10, **names) for number, start in enumerate(HOURS, 1)]
    assert await command("get", STATE, "JFK", "--to", "now", url=fake.url) == 0
    output = capsys.readouterr().out.splitlines()
    assert output[0].split() == ["window", "(UTC)", "version", "status", "flights", *names]
    assert len(output) == lines


async def test_get_writes_a_range_as_lines_of_json(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake.windows = [window("JFK", start) for start in HOURS]
    assert await command("get", STATE, "JFK", "--to", "now", "--newest-first", "--json", url=fake.url) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [datetime.fromisoformat(line["window_start"]) for line in lines] == HOURS
    assert {line["is_open"] for line in lines} == {False}
    assert "order=desc" in fake.requests[0]


async def test_a_range_without_windows_is_never_seen(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    assert await command("get", STATE, "JFK", "--to", "now", url=fake.url) == 3
    assert capsys.readouterr().out == "JFK  has no such window\n"


async def test_keys_of_a_window_by_a_number(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake.windows = [window(key, HOURS[1], flights=count) for key, count in (("EWR", 30), ("JFK", 20), ("LGA", 10))]
    given = ("keys", STATE, "--window", "2013-01-01T08:30:00-05:00")
    assert await command(*given, "--by", "state.flights", "--top", "2", url=fake.url) == 0
    assert capsys.readouterr().out == "EWR\t30\nJFK\t20\n"
    assert fake.requests[0].endswith("?order_by=-state.flights&limit=2")
    assert await command(*given, url=fake.url) == 0
    assert capsys.readouterr().out == "EWR\nJFK\nLGA\n"
    assert await command(*given, "--by", "state.flights", "--json", url=fake.url) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["value"]["state"]["flights"] == 30


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["get", STATE, "JFK", "--at", "2013-01-01T08:30:00"], "write a time with its offset from UTC"),
        (["get", STATE, "JFK", "--at", "yesterday"], "write a time with its offset from UTC"),
        (["get", STATE, "JFK", "--from", "now", "--at", "now"], "--from and --to select several windows"),
        (["get", STATE, "JFK", "--to", "now", "--version", "7"], "--from and --to select several windows"),
        (["get", STATE, "JFK", "--limit", "7"], "--newest-first and --limit need --from or --to"),
        (["get", STATE, "JFK", "--from", "now", "--limit", "0"], "write 1 or more"),
        (["keys", STATE, "--by", "state.flights"], "--by and --top need --window"),
        (["keys", STATE, "--window", "now", "--top", "3"], "--top needs --by"),
        (["watch", STATE, "JFK", "--window", "some"], "write a time with its offset from UTC"),
    ],
    ids=lambda given: " ".join(given[2:]) if isinstance(given, list) else "",
)
def test_wrong_times_and_combinations_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
