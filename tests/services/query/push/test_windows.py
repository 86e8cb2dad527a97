"""Watches of a windowed state: of the newest window, of all windows, and of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientSession

from contracts.wire.partition import partition
from services.query.cluster import PartitionStatus, Role
from tests.services.query.in_memory import a_state
from tests.services.query.push.serving import QUICK, Instance, connected, eventually, watching
from tests.services.query.push.windows import Watched, client_values, messages, relaying_to, seen, serving
from tests.services.query.windowed import DEPARTURES, HOUR, NOON, answered_at, at

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path


PATH = "/v1/states/departures/JFK/watch"


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    async with serving(tmp_path) as found:
        yield found


async def test_a_late_change_is_not_sent_as_the_newest_window(watched: Watched) -> None:
    watched.put("JFK", 0)
    async with watching(watched.instance, PATH) as events:
        assert seen((await events.next()).data) == ("JFK", "0", 1)
        watched.put("JFK", 1)
        watched.put("JFK", 0, version=2)  # late
        watched.put("JFK", 1, version=2)
        watched.put("JFK", -1)  # an older window, which did not exist
        watched.put("JFK", 2)
        found = [await events.next() for _ in range(3)]
    assert [seen(one.data) for one in found] == [("JFK", "1", 1), ("JFK", "1", 2), ("JFK", "2", 1)]
    assert found[0].id == f"{NOON + HOUR}.0.1"
    assert found[0].data["is_open"] is True
    assert found[0].data["window_end"] == answered_at(2)


@pytest.mark.parametrize("query", ["?current=false", ""])
async def test_a_late_change_is_not_sent_first(watched: Watched, query: str) -> None:
    async with watching(watched.instance, f"{PATH}{query}") as events:
        if not query:
            assert (await events.next()).data == {"state": "departures", "key": "JFK", "window_start": None}
        watched.written.put("JFK", 1)  # the store has it, and its change follows that of an older window
        watched.put("JFK", 0)
        watched.put("JFK", 1, version=2)
        assert seen((await events.next()).data) == ("JFK", "1", 2)


async def test_all_windows_are_sent_each_in_its_order(watched: Watched) -> None:
    watched.put("JFK", 0)
    watched.put("JFK", 1)
    async with watching(watched.instance, f"{PATH}?window=all") as events:
        assert [seen((await events.next()).data) for _ in range(2)] == [("JFK", "0", 1), ("JFK", "1", 1)]
        watched.put("JFK", 0, version=3)
        watched.put("JFK", 0, version=2)
        watched.put("JFK", 2)
        watched.put("JFK", 1, version=2)
        found = [seen((await events.next()).data) for _ in range(3)]
    assert found == [("JFK", "0", 3), ("JFK", "2", 1), ("JFK", "1", 2)]


async def test_all_windows_are_sent_again_after_a_broken_connection(watched: Watched) -> None:
    watched.put("JFK", 0)
    watched.put("JFK", 1, version=4)
    headers = {"Last-Event-ID": f"{NOON}.0.1"}
    async with watching(watched.instance, f"{PATH}?window=all", **headers) as events:
        assert seen((await events.next()).data) == ("JFK", "1", 4)
    watched.put("JFK", 0, version=2)
    async with watching(watched.instance, f"{PATH}?window=all", **headers) as events:
        assert [seen((await events.next()).data) for _ in range(2)] == [("JFK", "0", 2), ("JFK", "1", 4)]


async def test_one_window_is_watched_before_it_exists(watched: Watched) -> None:
    watched.put("JFK", 0)
    async with watching(watched.instance, f"{PATH}?window={at(1.5)}") as events:
        assert (await events.next()).event == "never_seen"
        watched.put("JFK", 0, version=2)
        watched.put("JFK", 1)
        watched.put("JFK", 2)
        watched.put("JFK", 1, version=2)
        assert [seen((await events.next()).data) for _ in range(2)] == [("JFK", "1", 1), ("JFK", "1", 2)]


@pytest.mark.parametrize("options", [{"key": "JFK"}, {"prefix": "J"}])
async def test_a_removed_window_is_followed_by_the_one_before(watched: Watched, options: dict[str, str]) -> None:
    for hour in (0, 1, 2):
        watched.put("JFK", hour)
    async with connected(watched.instance) as client:
        await client.subscribe("newest", state="departures", **options)
        assert await messages(client, 1) == [("JFK", "2", 1)]
        await client.next()  # current
        watched.remove("JFK", 0)
        watched.remove("JFK", 2)
        removed = await client.next()
        assert (removed["type"], removed["window_start"]) == ("removed", answered_at(2))
        assert await messages(client, 1) == [("JFK", "1", 1)]


async def test_prefixes_and_fields_select_windows_too(watched: Watched) -> None:
    for hour in (0, 1):
        watched.put("JFK", hour, carrier="UA")
        watched.put("LGA", hour, carrier=("UA", "AA")[hour])
    async with connected(watched.instance) as client:
        await client.subscribe("newest", state="departures", prefix="")
        assert sorted(await messages(client, 2)) == [("JFK", "1", 1), ("LGA", "1", 1)]
        await client.next()
        await client.send(type="unsubscribe", id="newest")
        await client.next()
        await client.subscribe("all", state="departures", prefix="", window="all")
        found = sorted(await messages(client, 4))
        assert found == [("JFK", "0", 1), ("JFK", "1", 1), ("LGA", "0", 1), ("LGA", "1", 1)]
        await client.next()
        await client.send(type="unsubscribe", id="all")
        await client.next()
        await client.subscribe("one", state="departures", where={"state.carrier": "UA"}, window=at(0))
        assert sorted(await messages(client, 2)) == [("JFK", "0", 1), ("LGA", "0", 1)]
        await client.next()
        watched.put("LGA", 1, version=2, carrier="UA")
        watched.put("LGA", 0, version=2, carrier="DL")
        left = await client.next()
        assert (left["type"], left["key"], left["window_start"]) == ("left", "LGA", answered_at(0))


async def test_a_filter_follows_the_newest_window(watched: Watched) -> None:
    watched.put("JFK", 0, carrier="UA")
    async with connected(watched.instance) as client:
        await client.subscribe("ua", state="departures", where={"state.carrier": "UA"})
        assert await messages(client, 1) == [("JFK", "0", 1)]
        await client.next()
        watched.put("JFK", 1, carrier="AA")
        left = await client.next()
        assert (left["type"], left["window_start"]) == ("left", answered_at(1))
        watched.put("JFK", 0, version=2, carrier="UA")  # late: the newest window does not match
        watched.put("JFK", 1, version=2, carrier="UA")
        assert await messages(client, 1) == [("JFK", "1", 2)]


@pytest.mark.parametrize("own_partitions", [(), range(DEPARTURES.partitions)])
async def test_a_filter_follows_the_newest_window_back(tmp_path: Path, own_partitions: Sequence[int]) -> None:
    async with relaying_to(tmp_path, own_partitions) as (relaying, owner, _):
        served = relaying if own_partitions else owner
        for hour, carrier in enumerate(("UA", "AA", "UA")):
            served.put("JFK", hour, carrier=carrier)
        async with connected(relaying.instance) as client:
            await client.subscribe("ua", state="departures", where={"state.carrier": "UA"})
            assert await client_values(client, 1) == [("JFK", "2", 1)]
            served.put("JFK", 2, version=2, carrier="AA")
            assert (await client.until("left"))[-1]["window_start"] == answered_at(2)
            served.remove("JFK", 2)  # the window before it does not match either
            served.remove("JFK", 1)
            removed = await client.next()
            assert (removed["type"], removed["window_start"]) == ("removed", answered_at(1))
            assert seen(await client.next()) == ("JFK", "0", 1)


async def test_a_filter_does_not_follow_the_removal_of_an_older_window(watched: Watched) -> None:
    for hour in (0, 1):
        watched.put("JFK", hour, carrier="UA")
    async with connected(watched.instance) as client:
        await client.subscribe("ua", state="departures", where={"state.carrier": "UA"}, current=False)
        watched.remove("JFK", 0)
        watched.put("JFK", 1, version=2, carrier="UA")
        assert await messages(client, 1) == [("JFK", "1", 2)]


async def test_an_invalid_window_is_rejected(watched: Watched) -> None:
    async with ClientSession(watched.instance.base) as session, session.get(f"{PATH}?window=open") as response:
        assert (await response.json())["type"] == "bad_request"
    async with connected(watched.instance) as client:
        assert (await client.subscribe("a", state="departures", key="JFK", window="open"))["type"] == "error"
    async with (
        Instance(a_state()).serving() as plain,
        ClientSession(plain.base) as session,
        session.get("/v1/states/flights/UA1/watch?window=all") as response,
    ):
        assert (await response.json())["type"] == "bad_request"


@pytest.mark.parametrize("window", ["newest", "all", at(1)])
async def test_windows_of_another_instance_are_relayed(tmp_path: Path, window: str) -> None:
    async with relaying_to(tmp_path) as (relaying, owner, _), connected(relaying.instance) as client:
        owner.put("JFK", 0)
        owner.put("JFK", 1)
        await client.subscribe("jfk", state="departures", key="JFK", window=window)
        expected = {"newest": [("JFK", "1", 1)], "all": [("JFK", "0", 1), ("JFK", "1", 1)]}
        present = expected.get(window, [("JFK", "1", 1)])
        assert await messages(client, len(present)) == present
        await eventually(lambda: owner.instance.subscriptions() == 1)
        owner.put("JFK", 0, version=2)
        owner.put("JFK", 1, version=2)
        found = await client_values(client, 2 if window == "all" else 1)
        assert found == [("JFK", "0", 2), ("JFK", "1", 2)][-len(found) :]
        owner.remove("JFK", 1)
        removed = await client.next()
        assert (removed["type"], removed["window_start"]) == ("removed", answered_at(1))


async def test_a_window_that_closes_is_sent_once_more(watched: Watched) -> None:
    watched.put("JFK", 0)
    watched.put("LGA", 0)
    watched.put("JFK", 1)
    async with (
        watching(watched.instance, PATH) as newest,
        watching(watched.instance, f"{PATH}?window=all") as every,
        watching(watched.instance, f"{PATH}?window={at(0)}&current=false") as one,
        connected(watched.instance) as client,
    ):
        assert [(await newest.next()).data["is_open"], await opened(every), await opened(every)] == [True] * 3
        await client.subscribe("all", state="departures", prefix="", window="all")
        assert await messages(client, 3) == [("JFK", "0", 1), ("JFK", "1", 1), ("LGA", "0", 1)]
        await client.next()  # current
        watched.close(0)
        for events in (every, one):
            closed = await events.next()
            assert (closed.event, closed.id) == ("state", f"{NOON}.0.1.closed")
            assert (seen(closed.data), closed.data["is_open"]) == (("JFK", "0", 1), False)
        found = [await client.next() for _ in range(2)]
        assert [(seen(one), one["answer"]["is_open"]) for one in found] == [
            (("JFK", "0", 1), False),
            (("LGA", "0", 1), False),
        ]
        watched.close(1)
        for events in (newest, every):
            assert (await events.next()).id == f"{NOON + HOUR}.0.1.closed"
        assert seen(await client.next()) == ("JFK", "1", 1)
        watched.put("JFK", 4)  # nothing else was sent before it
        for events in (newest, every):
            assert (await events.next()).id == f"{NOON + 4 * HOUR}.0.1"
        assert seen(await client.next()) == ("JFK", "4", 1)


@pytest.mark.parametrize(("last", "again"), [(f"{NOON}.0.1", True), (f"{NOON}.0.1.closed", False)])
async def test_a_window_that_closed_during_an_interruption_is_sent_once(tmp_path: Path, last: str, again: bool) -> None:  # noqa: FBT001
    async with serving(tmp_path) as before:
        before.put("JFK", 0)
        before.close(0)
    async with serving(tmp_path) as restarted:
        restarted.close(0)
        async with watching(restarted.instance, PATH, **{"Last-Event-ID": last}) as events:
            if again:
                assert (await events.next()).id == f"{NOON}.0.1.closed"
            restarted.put("JFK", 3)
            assert (await events.next()).id == f"{NOON + 3 * HOUR}.0.1"


async def test_only_the_last_version_says_that_its_window_has_closed_during_an_interruption(watched: Watched) -> None:
    for version in (1, 2, 3):
        watched.put("JFK", 0, version)
    watched.close(0)
    async with watching(watched.instance, PATH, **{"Last-Event-ID": f"{NOON}.0.1"}) as events:
        found = [await events.next() for _ in range(2)]
    assert [(one.id, one.data["is_open"]) for one in found] == [
        (f"{NOON}.0.2", True),
        (f"{NOON}.0.3.closed", False),
    ]


async def test_a_filter_selects_the_windows_that_are_sent_when_they_close(watched: Watched) -> None:
    watched.put("JFK", 0, carrier="UA")
    watched.put("LGA", 0, carrier="AA")
    async with connected(watched.instance) as client:
        await client.subscribe("ua", state="departures", where={"state.carrier": "UA"}, current=False)
        await eventually(lambda: watched.instance.subscriptions() == 1)
        watched.close(0)
        closed = await client.next()
        assert (seen(closed), closed["answer"]["is_open"]) == (("JFK", "0", 1), False)
        watched.put("LGA", 1, carrier="UA")
        assert await messages(client, 1) == [("LGA", "1", 1)]


async def test_a_time_before_the_year_1_does_not_hold_back_the_watches_of_its_connection(tmp_path: Path) -> None:
    async with relaying_to(tmp_path) as (relaying, owner, _), connected(relaying.instance) as client:
        owner.put("JFK", 0)
        await client.subscribe("first", state="departures", key="JFK", window="0001-01-01T00:00:00+14:00")
        await client.subscribe("newest", state="departures", key="JFK")
        assert await client_values(client, 1) == [("JFK", "0", 1)]


async def test_a_window_of_another_instance_is_sent_once_when_it_closes(tmp_path: Path) -> None:
    async with relaying_to(tmp_path) as (relaying, owner, _), connected(relaying.instance) as client:
        relaying.written.put("JFK", 0)  # a replica has it too
        owner.put("JFK", 0)
        await client.subscribe("all", state="departures", prefix="", window="all")
        assert await client_values(client, 1) == [("JFK", "0", 1)]
        relaying.close(0)
        owner.close(0)
        assert await client_values(client, 1) == [("JFK", "0", 1)]
        owner.put("JFK", 2)
        assert await client_values(client, 1) == [("JFK", "2", 1)]


@pytest.mark.parametrize("window", ["newest", "all"])
async def test_a_window_of_another_instance_expires_once_also_after_a_move_there(tmp_path: Path, window: str) -> None:
    moved = partition(b"LGA", DEPARTURES.partitions)
    async with (
        relaying_to(tmp_path, [moved], limits=QUICK) as (relaying, owner, own),
        connected(relaying.instance) as client,
    ):
        owner.put("JFK", 0)
        await client.subscribe("many", state="departures", prefix="", window=window)
        assert await client_values(client, 1) == [("JFK", "0", 1)]
        (before,) = owner.instance.watching.feed.subscriptions("departures")
        own.others[moved] = PartitionStatus(Role.ELSEWHERE, 0)
        relaying.instance.watching.refresh()
        await eventually(lambda: owner.instance.watching.feed.subscriptions("departures") not in ([], [before]))
        owner.put("EWR", 0)  # the owner reports this one too
        assert await client_values(client, 1) == [("EWR", "0", 1)]
        for one in (owner, relaying):
            one.written.store.advance_watermark(NOON + 24 * HOUR)
        found = [await client.next() for _ in range(2)]
        assert [one["type"] for one in found] == ["expired"] * 2
        assert ({one["key"] for one in found}, found[0]["window_start"]) == ({"JFK", "EWR"}, answered_at(0))
        for _ in range(3):  # the other instance has reported it by then
            assert [one["type"] for one in await client.until("mark")] == ["mark"]


@pytest.mark.parametrize("hours", [(2,), (0, 2)])
async def test_a_window_is_removed_at_an_owner_that_did_not_send_it_on_this_watch(
    tmp_path: Path, hours: tuple[int, ...]
) -> None:
    moved = partition(b"LGA", DEPARTURES.partitions)
    async with relaying_to(tmp_path, [moved]) as (relaying, owner, own), connected(relaying.instance) as client:
        for hour in (0, 1, 2):
            owner.put("JFK", hour)
        await client.subscribe("many", state="departures", prefix="")
        assert await client_values(client, 1) == [("JFK", "2", 1)]
        (own_watch,) = relaying.instance.watching.feed.subscriptions("departures")
        await eventually(lambda: None not in own_watch.since.values())
        (before,) = owner.instance.watching.feed.subscriptions("departures")
        own.others[moved] = PartitionStatus(Role.ELSEWHERE, 0)
        relaying.instance.watching.refresh()
        await eventually(lambda: owner.instance.watching.feed.subscriptions("departures") not in ([], [before]))
        owner.put("LGA", 0)
        assert await client_values(client, 1) == [("LGA", "0", 1)]  # messages are of the new watch
        for hour in hours:  # the client has only the newest one
            owner.remove("JFK", hour)
        owner.put("LGA", 1)
        removed, *others = [await client.next() for _ in range(3)]
        assert (removed["type"], removed.get("window_start")) == ("removed", answered_at(2))
        assert [seen(one) for one in others] == [("JFK", "1", 1), ("LGA", "1", 1)]


async def opened(events: Any) -> Any:
    return (await events.next()).data["is_open"]
