"""An instance whose store a test writes, over HTTP, and clients that watch it."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from aiohttp import ClientSession, WSMsgType

from services.query.http.request_guard import RequestGuard
from services.query.http.server import HttpServer
from services.query.http.watch_routes import WatchRoutes
from services.query.limits import WatchLimits
from services.query.lookup.authentication import Authenticator
from services.query.store import Change, Entry, Update
from tests.deadline import DEADLINE_S
from tests.services.query.in_memory import NOW, MemoryRouting, ScratchStore, a_state, dependencies_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from aiohttp import ClientResponse, ClientWebSocketResponse

    from contracts.model.named_state import NamedState
    from services.query.dependencies import Dependencies

WITHIN_S = float(DEADLINE_S)
QUICK = WatchLimits(mark_every_s=0.05)
RARE = WatchLimits(mark_every_s=60)


class Instance:
    """An instance with states in memory and a push service."""

    def __init__(
        self,
        *states: NamedState,
        limits: WatchLimits = RARE,
        tokens: Path | None = None,
        dependencies: Dependencies | None = None,
        **settings: Any,
    ) -> None:
        self.routing = MemoryRouting()
        self.states = {one.name: one for one in states or (a_state(),)}
        self.dependencies = dependencies or dependencies_of(
            *self.states.values(), routing=self.routing, tokens=tokens, **settings
        )
        self.push = WatchRoutes(self.dependencies, limits)
        self.watching = self.push.service
        self.access = Authenticator(tokens, self.dependencies.settings.peer_token)
        self.server = HttpServer(self.dependencies, RequestGuard(self.dependencies, self.access), [self.push])
        self.base = ""
        self.offset = 0

    def put(  # noqa: PLR0913  # all but two have defaults
        self,
        key: str,
        version: int,
        value: Any = None,
        *,
        state: str = "flights",
        window_start: int = NOW,
        epoch: int = 0,
        partition: int | None = None,
    ) -> Change:
        """Store a record of the key without feeding it, perhaps of another partition than the key's."""
        self.offset += 1
        written = b"".join([orjson.dumps({"v": version} if value is None else value), b" "])  # without orjson's buffer
        partition = self.watching.routing.partition(state, key) if partition is None else partition
        entry = Entry(window_start, epoch, version, NOW, partition, self.offset, written)
        return self._apply(state, Update(key, partition, self.offset, entry))

    def remove(self, key: str, state: str = "flights") -> Change:
        """Store a tombstone of the key without feeding it."""
        self.offset += 1
        partition = self.watching.routing.partition(state, key)
        return self._apply(state, Update(key, partition, self.offset, None))

    def change(self, key: str, version: int, value: Any = None, **facts: Any) -> None:
        """Store a record and feed it."""
        self.watching.changed([self.put(key, version, value, **facts)])

    def store(self, state: str = "flights") -> ScratchStore:
        """Return the store of a state."""
        found = self.dependencies.stores[state]
        assert isinstance(found, ScratchStore)
        return found

    def _apply(self, state: str, update: Update) -> Change:
        self.dependencies.stores[state].apply([update], {update.partition: update.offset + 1})
        return Change(state, update.key, update.entry)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Instance]:
        """Serve on a free port."""
        running = asyncio.create_task(self.watching.run())
        async with self.server.serving() as port:
            self.base = f"http://127.0.0.1:{port}"
            try:
                yield self
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    def subscriptions(self) -> int:
        """Return the number of subscriptions."""
        return sum(self.watching.feed.count(name) for name in self.states)


class Event(NamedTuple):
    """One server-sent event."""

    event: str
    id: str | None
    data: Any


class Events:
    """A stream of server-sent events, read as the standard defines."""

    def __init__(self, response: ClientResponse) -> None:
        self.response = response

    async def next(self, *, marks: bool = False) -> Event:
        """Return the next event within the deadline, skipping marks by default."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                found = await self._one()
                if found is not None and (marks or found.event != "mark"):
                    return found

    async def _one(self) -> Event | None:
        fields: dict[str, str] = {}
        while (line := (await self.response.content.readline()).decode()) != "\n":
            if not line:
                raise EOFError
            name, _, value = line.rstrip("\n").partition(": ")
            fields[name] = value
        return Event(fields["event"], fields.get("id"), orjson.loads(fields["data"])) if "data" in fields else None


@asynccontextmanager
async def watching(instance: Instance, path: str, **headers: str) -> AsyncIterator[Events]:
    """Open an event stream of an instance."""
    async with ClientSession(instance.base) as session, session.get(path, headers=headers) as response:
        assert response.status == 200, await response.text()
        yield Events(response)


class Client:
    """A client of a WebSocket."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self.socket = socket

    async def send(self, **message: Any) -> None:
        await self.socket.send_str(orjson.dumps(message).decode())

    async def subscribe(self, name: str, **options: Any) -> dict[str, Any]:
        """Subscribe, and return the response."""
        await self.send(type="subscribe", id=name, **({"state": "flights"} | options))
        return await self.next()

    async def next(self, *, marks: bool = False) -> dict[str, Any]:
        """Return the next message within the deadline, skipping marks by default."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                found = await self.socket.receive()
                if found.type is not WSMsgType.TEXT:
                    raise EOFError(f"{found.type} {found.data}")
                message: dict[str, Any] = orjson.loads(found.data)
                if marks or message["type"] != "mark":
                    return message

    async def until(self, kind: str) -> list[dict[str, Any]]:
        """Return all messages up to the first of this kind."""
        found = [await self.next(marks=True)]
        while found[-1]["type"] != kind:
            found.append(await self.next(marks=True))
        return found


@asynccontextmanager
async def connected(instance: Instance, **options: Any) -> AsyncIterator[Client]:
    """Open a WebSocket of an instance."""
    async with ClientSession(instance.base) as session, session.ws_connect("/v1/watch", **options) as socket:
        yield Client(socket)


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait for the condition. Raises TimeoutError."""
    end = time.monotonic() + WITHIN_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        await asyncio.sleep(0.005)
