"""The real client, over the ways of the simulation."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from typing_extensions import override

from services.client import Client
from services.client.addresses import Addresses
from services.client.errors import UnreachableError
from services.client.request_sender import RequestSender
from services.client.transport import SILENCE_S, ClientTransport, InstanceResponse, unreachable
from tests.simulation.instances.handlers import Request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from random import Random

    from aiohttp import ClientWebSocketResponse

    from contracts.api.endpoint import Endpoint
    from tests.simulation.instances.requests import Requests

T = TypeVar("T")
BREAKS = 0.02
"""The share of messages after which a client loses its connection."""
REMEMBERED = 100
LARGEST_PAGE = 3


class SimulatedClient(Client):
    """A client of all instances. It reads pages of few items, so that it follows their cursors."""

    def __init__(self, requests: Requests, random: Random) -> None:
        urls, loop = [f"http://{name}" for name in requests.instances], asyncio.get_running_loop()
        super().__init__(urls, discover=False, remember=REMEMBERED)
        self._random = random
        self._transport = transport = SimulatedTransport(requests, random)
        self._addresses = Addresses(urls, transport, loop.time, discover=False, draw=random.uniform)
        self._sender = RequestSender(transport, self._addresses, loop.time, asyncio.sleep, random.uniform)

    @override
    async def _send(
        self,
        endpoint: Endpoint,
        query: Mapping[str, object],
        read: Callable[[InstanceResponse], T],
        deadline: float | None = None,
        body: Mapping[str, Any] | None = None,
        **segments: str,
    ) -> T:
        if "limit" in query and query["limit"] is None:
            query = {**query, "limit": self._random.randint(1, LARGEST_PAGE)}
        return await super()._send(endpoint, query, read, deadline, body, **segments)


class SimulatedTransport(ClientTransport):
    """Sends the requests of one client, and opens its WebSockets."""

    def __init__(self, requests: Requests, random: Random) -> None:
        super().__init__(None, 1)
        self._requests = requests
        self._random = random

    @override
    async def send(
        self, url: str, target: str, within_s: float, body: Mapping[str, Any] | None = None, *, waits: bool = False
    ) -> InstanceResponse:
        request = Request(target) if body is None else Request(target, "POST", body=orjson.dumps(body))
        try:
            async with asyncio.timeout(within_s):
                reply = await self._requests.send(url.removeprefix("http://"), request)
        except TimeoutError as error:
            raise unreachable(url, error) from error
        if reply is None:
            raise UnreachableError(f"{url}: the connection is lost")
        after = reply.headers.get("Retry-After")
        return InstanceResponse(url, reply.status, reply.json, None if after is None else float(after))

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
