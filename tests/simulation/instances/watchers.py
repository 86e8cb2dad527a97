"""Clients that watch: the real client, over the WebSockets of the simulation."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from typing_extensions import override

from services.client.addresses import Addresses
from services.client.answers import Expired, Found
from services.client.high_water_marks import HighWaterMarks
from services.client.request_sender import RequestSender
from services.client.transport import SILENCE_S, ClientTransport
from services.client.watch import Mark, Watch, WatchFilter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager
    from datetime import datetime
    from random import Random

    from aiohttp import ClientWebSocketResponse

    from services.client.answers import Update
    from services.query.store.entry import EntryOrder
    from tests.simulation.instances.reader import Answers
    from tests.simulation.instances.requests import Requests

BREAKS = 0.02
"""The share of messages after which a client loses its connection."""
SLOW = 0.1
"""The share of updates after which a client pauses."""
LONGEST_PAUSE_S = 3.0
REMEMBERED = 100


class Watched(NamedTuple):
    """An update that a watcher got: `order` is None of a key that is gone."""

    watcher: str
    key: str
    at: float
    order: EntryOrder | None
    window_start: datetime | None
    """The window that is gone; None of a key."""
    written: int
    """The number of states that the topic had given the key by then."""
    newest: int
    """The start of the newest window of all keys then."""
    has_expired: bool
    is_open: bool | None
    expired: None = None
    live_only: bool = False
    without: None = None


class WatchTransport(ClientTransport):
    """Opens the WebSockets of one client."""

    def __init__(self, requests: Requests, random: Random) -> None:
        super().__init__(None, 1)
        self._requests = requests
        self._random = random

    @override
    def socket(self, url: str, target: str) -> AbstractAsyncContextManager[ClientWebSocketResponse]:
        return self._socket(url)

    @asynccontextmanager
    async def _socket(self, url: str) -> AsyncIterator[ClientWebSocketResponse]:
        async with self._requests.connect("", url, SILENCE_S) as end:
            yield _Breaking(end, self._random)  # type: ignore[misc]  # it has what the client uses


class _Breaking:
    """The client's end of a connection, which breaks now and then."""

    def __init__(self, end: ClientWebSocketResponse, random: Random) -> None:
        self._end = end
        self._random = random
        self.send_str = end.send_str
        self.exception = end.exception

    def __aiter__(self) -> _Breaking:
        return self

    async def __anext__(self) -> object:
        if self._random.random() < BREAKS:
            raise StopAsyncIteration
        return await anext(self._end)


class Watcher:
    """A client that watches some keys, and is slow at times."""

    def __init__(
        self, name: str, filters: Sequence[WatchFilter], requests: Requests, answers: Answers, random: Random
    ) -> None:
        self._name = name
        self._answers = answers
        self._random = random
        self._filters = filters
        self._requests = requests

    async def run(self) -> None:
        """Watch until cancelled."""
        loop, random = asyncio.get_running_loop(), self._random
        transport = WatchTransport(self._requests, random)
        urls = [f"http://{name}" for name in self._requests.instances]
        addresses = Addresses(urls, transport, loop.time, discover=False, draw=random.uniform)
        sender = RequestSender(transport, addresses, loop.time, asyncio.sleep, random.uniform)
        watch = Watch(self._filters, transport, HighWaterMarks(REMEMBERED))
        async for update in watch.updates(sender, self._name, float("inf")):
            self._note(update, loop.time())
            if random.random() < SLOW:
                await asyncio.sleep(random.uniform(0.0, LONGEST_PAUSE_S))

    def _note(self, update: Update[Any] | Mark, at: float) -> None:
        assert not isinstance(update, Mark)
        found = update if isinstance(update, Found) else None
        order, gone = (found.order, None) if found else (None, update.window_start)
        written, newest = self._answers.written(update.key), self._answers.newest
        has_expired, is_open = isinstance(update, Expired), found.is_open if found else None
        watched = Watched(self._name, update.key, at, order, gone, written, newest, has_expired, is_open)
        self._answers.watched.append(watched)
