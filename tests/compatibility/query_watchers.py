"""Clients over HTTP that check what an upgraded query service delivers: watches through one instance, and pages."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from urllib.parse import quote, urlencode

from aiohttp import ClientError, ClientSession, ClientTimeout, WSMsgType
from typing_extensions import override

from tests.compatibility.queried import CARS, FIRST, HOURS, PARKED, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.compatibility.queried import Load, Order, Window

PAUSE_S = 0.2
SILENT_S = 20
"""A stream has a mark every 5 s: a client closes one that is silent for longer."""
ANSWER = ClientTimeout(total=2.0, sock_connect=0.3)
GONE = {"removed", "expired", "left", "never_seen"}
PASSING = {"catching_up", "unreachable", "behind"}
"""Problems of an interruption, with 503."""
ITEMS, PARKED_ITEMS = 7, 1_000
"""Of a page."""


class Place:
    """An instance that clients know by its address; another one may take its place. `name` has its version, too."""

    def __init__(self, name: str) -> None:
        self.instance, self.name, self.url = name, name, ""


class DeliveryCheck:
    """The newest order of each name, and what was older, or not expected at all."""

    def __init__(self) -> None:
        self.newest: dict[tuple[str, ...], Order] = {}
        self.older: list[str] = []
        self.failed: list[str] = []

    def take(self, reader: str, name: tuple[str, ...], answer: dict[str, Any]) -> None:
        """Take an answer of a name."""
        order = str(answer["window_start"]), int(answer["epoch"]), int(answer["version"])
        if order < self.newest.get(name, order):
            self.older.append(f"{reader}: {name} at {order} after {self.newest[name]}")
        self.newest[name] = order


class Watch(ABC):
    """A watch through one place, which connects again when it breaks."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.check = DeliveryCheck()

    async def run(self, session: ClientSession) -> NoReturn:
        """Watch until it is cancelled."""
        while True:
            with suppress(ClientError, OSError, TimeoutError):
                await self._watch(session)
            await asyncio.sleep(PAUSE_S)

    @abstractmethod
    async def _watch(self, session: ClientSession) -> None:
        """Watch until the stream ends."""

    @abstractmethod
    def has_seen(self, load: Load) -> int:
        """Return how many last snapshots it has received."""

    @abstractmethod
    def to_see(self, load: Load) -> int:
        """Return how many there are."""


class SocketWatch(Watch):
    """Watches all keys by a WebSocket."""

    @override
    async def _watch(self, session: ClientSession) -> None:
        async with session.ws_connect(f"{self._place.url}/v1/watch") as socket:
            for state, window in ((CARS, {}), (HOURS, {"window": "all"})):
                await socket.send_json(
                    {"type": "subscribe", "id": state, "state": state, "prefix": f"{state}/"} | window
                )
            while (frame := await socket.receive(SILENT_S)).type is WSMsgType.TEXT:
                message = json.loads(frame.data)
                if message["type"] == "reset":
                    return
                self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "state":
            answer = message["answer"]
            windows = (str(answer["window_start"]),) if answer["state"] == HOURS else ()
            self.check.take(f"WebSocket at {self._place.name}", (answer["state"], answer["key"], *windows), answer)
        elif kind in GONE or (kind == "error" and message["problem"]["type"] not in PASSING):
            self.check.failed.append(f"WebSocket at {self._place.name}: {message}")

    @override
    def to_see(self, load: Load) -> int:
        return len(load.windows)

    @override
    def has_seen(self, load: Load) -> int:
        return sum(
            self.check.newest.get(window if window[0] == HOURS else window[:2]) == written.order
            for window, written in load.windows.items()
        )


class EventsWatch(Watch):
    """Watches one key by server-sent events, and continues after the last id."""

    def __init__(self, place: Place, state: str, key: str) -> None:
        super().__init__(place)
        self.key, self._last_id = (state, key), ""

    @override
    async def _watch(self, session: ClientSession) -> None:
        state, key = self.key
        url = f"{self._place.url}/v1/states/{state}/{quote(key, safe='')}/watch"
        headers = {"Last-Event-ID": self._last_id} if self._last_id else {}
        timeout = ClientTimeout(total=None, sock_read=SILENT_S)
        async with session.get(url, headers=headers, timeout=timeout) as response:
            if response.status != HTTPStatus.OK:
                if response.status != HTTPStatus.SERVICE_UNAVAILABLE:
                    self.check.failed.append(f"events at {self._place.name}: {response.status} {await response.text()}")
                return
            members: dict[str, str] = {}
            async for line in response.content:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                members[name] = value
                if not name:
                    self._take(members)
                    members = {}

    def _take(self, members: dict[str, str]) -> None:
        kind = members.get("event")
        if kind == "state":
            self.check.take(f"events at {self._place.name}", self.key, json.loads(members["data"]))
            self._last_id = members["id"]
        elif kind in {*GONE, "problem"}:
            self.check.failed.append(f"events at {self._place.name}: {members}")

    @override
    def to_see(self, load: Load) -> int:
        return 1

    @override
    def has_seen(self, load: Load) -> int:
        return self.check.newest.get(self.key) == load.newest[self.key].order


class Listing(NamedTuple):
    """A request for pages, the names of the members of a page, and which names all pages have at least."""

    path: str
    query: Mapping[str, object]
    items: str
    cursor: str
    expected: Callable[[], set[Window]]


def listings(load: Load) -> list[Listing]:
    """Return the listings of keys and of windows."""
    parked = {(CARS, f"parked/{number}", text(FIRST)) for number in range(PARKED)}
    cars, hour, hours = f"/v1/states/{CARS}", f"/v1/states/{HOURS}/windows/{text(FIRST)}", f"{HOURS}/00"

    def cars_now() -> set[Window]:
        return {(state, key, "") for state, key in load.newest if state == CARS}

    def first_hours() -> set[Window]:
        return {window for window in load.settled if window[0] == HOURS and window[2] == text(FIRST)}

    def windows() -> set[Window]:
        return {window for window in load.settled if window[:2] == (HOURS, hours)}

    many, indexed = {"prefix": "parked/", "limit": PARKED_ITEMS}, {"where": "state.lot:lot 1"}
    return [
        Listing(cars, {"prefix": f"{CARS}/", "limit": ITEMS}, "items", "after", cars_now),
        Listing(cars, many, "items", "after", lambda: parked),
        Listing(cars, many | indexed, "items", "after", lambda: parked),
        Listing(hour, {"limit": ITEMS}, "items", "cursor", first_hours),
        Listing(f"/v1/states/{HOURS}/{quote(hours, safe='')}/windows", {"limit": 3}, "windows", "cursor", windows),
    ]


class PageReader:
    """Reads all pages of several listings repeatedly, each page at another place."""

    def __init__(self, places: Sequence[Place], listings: Sequence[Listing]) -> None:
        self._places, self._listings = itertools.cycle(places), listings
        self.check = DeliveryCheck()
        self.listings, self.longest_s = 0, 0.0
        """How many listings were read to their ends, and the seconds of the slowest page."""

    async def run(self, session: ClientSession) -> NoReturn:
        """Read until it is cancelled."""
        while True:
            for listing in self._listings:
                await self._list(session, listing)
                await asyncio.sleep(PAUSE_S)

    async def _list(self, session: ClientSession, listing: Listing) -> None:
        expected, found, cursor = listing.expected(), [], None
        while True:
            rest: dict[str, object] = {} if cursor is None else {listing.cursor: cursor}
            page = await self._page(session, f"{listing.path}?{urlencode({**listing.query, **rest})}")
            if page is None:
                return
            for answer in page[listing.items]:
                is_newest = listing.cursor == "after"
                window = (answer["state"], answer["key"], str(answer["window_start"]))
                self.check.take(listing.path, window[:2] if is_newest else window, answer)
                found.append((*window[:2], "") if answer["key"].startswith(f"{CARS}/") else window)
            cursor = page[listing.cursor]
            if cursor is None:
                break
        if missing := expected - {*found}:
            self.check.failed.append(f"{listing.path} {listing.query} lacks {len(missing)}, as {min(missing)}")
        if len(found) > len({*found}):
            self.check.failed.append(f"{listing.path} {listing.query} repeats {len(found) - len({*found})}")
        self.listings += 1

    async def _page(self, session: ClientSession, target: str) -> dict[str, Any] | None:
        """Return a page from the first place that has it; None if one rejects the request."""
        began = time.monotonic()
        for place in self._places:
            try:
                async with session.get(place.url + target, timeout=ANSWER) as response:
                    body = await response.read()
            except (ClientError, OSError, TimeoutError):
                continue
            finally:
                self.longest_s = max(self.longest_s, time.monotonic() - began)
            if response.status == HTTPStatus.OK:
                page: dict[str, Any] = json.loads(body)
                return page
            if response.status != HTTPStatus.SERVICE_UNAVAILABLE:
                self.check.failed.append(f"{target} at {place.name}: {response.status} {body.decode()[:300]}")
                return None
            await asyncio.sleep(PAUSE_S)
        return None
