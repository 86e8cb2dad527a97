"""The judge of an upgrade of the query service accepts what keeps all promises, and finds each broken one."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from tests.compatibility.queried import CARS, HOURS, Load
from tests.compatibility.query_watchers import Listing, PageReader, Place
from tests.compatibility.upgrade_query import Clients
from tests.services.query.faults.checker import NOTHING
from tests.services.query.in_memory import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.compatibility.queried import Order, WrittenSnapshot

KEY = CARS, f"{CARS}/00"
SNAPSHOTS, READS, LISTINGS = 500, 2_000, 100


def body(written: WrittenSnapshot, **other: object) -> dict[str, Any]:
    """Return the answer of a snapshot."""
    start, epoch, version = written.order
    return {
        "state": written.state,
        "key": written.key,
        "window_start": start,
        "epoch": epoch,
        "version": version,
    } | other


@pytest.fixture
def clients() -> Clients:
    """Give clients that have seen the last snapshots of a load."""
    load = Load(1)
    load.first()
    for _ in range(SNAPSHOTS):
        load.next()
    found = Clients(load, [Place(name) for name in "abc"])
    for watch in found.watches:
        for written in load.windows.values():
            windows = (written.window[2],) if written.state == HOURS else ()
            watch.check.take("watch", (written.state, written.key, *windows), body(written))
    for watch in found.watches[len(found.places) :]:
        watch.check.newest |= {name: written.order for name, written in load.newest.items()}
    for _ in range(READS):
        read(found, NOTHING)
    found.pages.listings = LISTINGS
    return found


def read(clients: Clients, floor: Order, place: str = "a-new", **other: object) -> None:
    """Give a checker an answer after a later one."""
    clients.places[0].name = place
    clients.checkers[0].check(clients.places[0], KEY[1], floor, body(clients.load.newest[KEY], **other))


def broken(clients: Clients) -> set[str]:
    """Return the promises that the judge calls broken."""
    return {row.name for row in clients.judge() if not row.is_right}


def test_clients_that_see_all_are_accepted(clients: Clients) -> None:
    for place, problem in (("a-new", "catching_up"), ("a-new", "unreachable"), ("a-old", "elsewhere")):
        read(clients, NOTHING, place, type=problem)
    assert broken(clients) == set()
    assert len({window[2] for window in clients.load.windows}) > 1
    assert {written.epoch for written in clients.load.newest.values()} > {1}


def see_an_older_epoch(clients: Clients) -> None:
    older = body(clients.load.newest[KEY], epoch=0, version=10_000)
    clients.watches[-2].check.take("events", KEY, body(clients.load.newest[KEY]))
    clients.watches[-2].check.take("events", KEY, older)
    clients.watches[-2].check.take("events", KEY, body(clients.load.newest[KEY]))


def read_an_older_version(clients: Clients) -> None:
    read(clients, clients.load.newest[KEY].order, version=0)


def read_never_seen(clients: Clients) -> None:
    read(clients, clients.load.newest[KEY].order, type="never_seen")


def lose_an_update_of_a_socket(clients: Clients) -> None:
    clients.watches[0].check.newest.popitem()


def lose_an_update_of_events(clients: Clients) -> None:
    del clients.watches[-1].check.newest[HOURS, f"{HOURS}/00"]


def fail(clients: Clients) -> None:
    read(clients, NOTHING, type="failed")


def tell_a_client_that_a_key_is_elsewhere(clients: Clients) -> None:
    read(clients, NOTHING, type="elsewhere")


def answer_a_page_late(clients: Clients) -> None:
    clients.pages.longest_s = 9.0


def list_nothing(clients: Clients) -> None:
    clients.pages.listings = 0


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (see_an_older_epoch, "older answers"),
        (read_an_older_version, "older answers"),
        (read_never_seen, "older answers"),
        (lose_an_update_of_a_socket, "last snapshots at watchers"),
        (lose_an_update_of_events, "last snapshots at watchers"),
        (fail, "answers that are not expected"),
        (tell_a_client_that_a_key_is_elsewhere, "answers that are not expected"),
        (answer_a_page_late, "seconds for a page, at most"),
        (list_nothing, "listings read, at least"),
    ],
)
def test_each_fault_is_found(clients: Clients, fault: Callable[[Clients], None], found: str) -> None:
    fault(clients)
    assert broken(clients) == {found}


@pytest.mark.parametrize(
    ("keys", "status", "found"),
    [("abc", 200, None), ("ac", 200, "lacks 1"), ("abbc", 200, "repeats 1"), ("abc", 400, ": 400"), ("abc", 503, None)],
)
async def test_pages_are_complete(keys: str, status: int, found: str | None) -> None:
    asked: list[str] = []

    async def page(request: web.Request) -> web.Response:
        asked.append(request.path_qs)
        if len(asked) == 2 and status != HTTPStatus.OK:
            return web.json_response({"type": "catching_up"}, status=status)
        at = int(request.query.get("after", 0))
        answer = {"state": CARS, "key": keys[at], "window_start": "", "epoch": 1, "version": 1}
        return web.json_response({"items": [answer], "after": str(at + 1) if at + 1 < len(keys) else None})

    app = web.Application()
    app.router.add_get("/cars", page)
    async with TestServer(app) as server, ClientSession() as session:
        places = [Place(name) for name in "xy"]
        for place in places:
            place.url = str(server.make_url("")).rstrip("/")
        expected = {(CARS, key, "") for key in "abc"}
        reader = PageReader(places, [Listing("/cars", {"limit": 1}, "items", "after", lambda: expected)])
        reading = asyncio.create_task(reader.run(session))
        await until(lambda: bool(reader.listings or reader.check.failed))
        reading.cancel()
    assert [found in line for line in reader.check.failed] == [True] if found else not reader.check.failed
    assert reader.check.older == []
