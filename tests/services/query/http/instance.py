"""An instance that serves stores in memory over HTTP, and a client that sends raw bytes."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from prometheus_client import generate_latest
from typing_extensions import override

from services.query.http.assembly import state_api
from services.query.http.monitoring import MonitoringRoutes
from services.query.http.openapi import OpenApiRoutes
from services.query.http.peer_client import received
from services.query.http.rule_test_routes import RuleTestRoutes
from services.query.http.server import HttpServer
from services.query.lookup.authentication import Authenticator
from services.query.openapi import document
from services.runtime.monitoring import MonitoredProcess, process_registry
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from contracts.metrics.counts import Counts
    from services.query.cluster import Member
    from services.query.dependencies import Dependencies
    from services.query.http.peer_client import ForwardedRequest, PeerClient
    from services.query.http.responses import Headers, HttpResponse
    from services.query.http.server import Routes
    from services.query.http.table_routes import DeclaredTable

NO_TABLES: Mapping[str, DeclaredTable] = {}
DATE = re.compile(rb"\r\nDate: [^\r]+ GMT\r\n")


class Response(NamedTuple):
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def kind(self) -> str:
        return str(self.json["type"])


class Connection:
    """One connection to an instance."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def response(self, *, bodiless: bool = False) -> Response:
        """Return the next response."""
        async with asyncio.timeout(DEADLINE_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode().split("\r\n")[:-2]
            headers = dict(line.split(": ", 1) for line in lines)
            length = 0 if bodiless else int(headers.get("Content-Length", 0))
            body = await self.reader.readexactly(length)
        return Response(int(first.split()[1]), headers, body, DATE.sub(b"\r\nDate: now\r\n", head) + body)

    async def rest(self) -> bytes:
        """Return all bytes until the connection ends."""
        async with asyncio.timeout(DEADLINE_S):
            return DATE.sub(b"\r\nDate: now\r\n", await self.reader.read())


class Watched(MonitoredProcess):
    """A process with a health that a test sets, and with these metrics."""

    def __init__(self, counts: Counts) -> None:
        self.why: str | None = None
        self._registry = process_registry(counts)

    @override
    def unhealthy(self) -> str | None:
        return self.why

    @override
    def unready(self) -> str | None:
        return self.why

    @override
    def text(self) -> bytes:
        return generate_latest(self._registry)


@cache
def openapi_routes() -> OpenApiRoutes:
    """Return the routes of the OpenAPI document: all instances serve the same, and it costs more CPU than the rest."""
    return OpenApiRoutes(document())


class Instance:
    """A server whose dependencies tests change."""

    def __init__(
        self,
        dependencies: Dependencies,
        *,
        hot: bool,
        peer_client: PeerClient | None = None,
        others: Sequence[Routes] = (),
        tables: Mapping[str, DeclaredTable] = NO_TABLES,
    ) -> None:
        settings = dependencies.settings
        self.dependencies = dependencies
        self.port = 0
        self.access = Authenticator(settings.tokens, settings.peer_token)
        api = state_api(dependencies, self.access, peer_client)
        self.waits, self.hot = api.waiters, api.fast_path if hot else None
        pieces: list[Routes] = [
            MonitoringRoutes(Watched(dependencies.counts)),
            openapi_routes(),
            *api.routes,
            RuleTestRoutes(dependencies, api.readers, api.pages, tables),
            *others,
        ]
        self.server = HttpServer(dependencies, api.guard, pieces, self.hot)

    @asynccontextmanager
    async def connected(self, receive_buffer: int | None = None) -> AsyncIterator[Connection]:
        """Give a connection, whose receive buffer has this number of bytes."""
        connected = socket.socket()
        if receive_buffer:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connected.setblocking(False)  # noqa: FBT003  # positional only
        await asyncio.get_running_loop().sock_connect(connected, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=connected)
        try:
            yield Connection(reader, writer)
        finally:
            writer.close()

    async def ask(
        self, path: str, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        """Send one request on its own connection and return the response."""
        async with self.connected() as connection:
            connection.send(request(path, method, headers, body))
            return await connection.response(bodiless=method == "HEAD")


class Peers:
    """A PeerClient that forwards to instances of the test, over HTTP as the real one does."""

    def __init__(self) -> None:
        self.instances: dict[str, Instance] = {}
        self.forwarded_to: list[str] = []
        self.targets: list[str] = []
        self.headers: list[Headers] = []

    async def forward(self, members: Sequence[Member], request: ForwardedRequest) -> HttpResponse:
        target, method, headers, body = request
        self.targets.append(target)
        self.headers.append(headers)
        response = await self.instances[members[0].instance].ask(
            target, method, {**dict(headers), "Stateloop-Hop": "1"}, body
        )
        self.forwarded_to.append(members[0].instance)
        return received(response.status, response.headers, response.body)


@asynccontextmanager
async def answering(
    dependencies: Dependencies, *, hot: bool, peer_client: PeerClient | None = None
) -> AsyncIterator[Instance]:
    """Serve an instance."""
    instance = Instance(dependencies, hot=hot, peer_client=peer_client)
    async with instance.server.serving() as instance.port:
        yield instance


def request(path: str, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes = b"") -> bytes:
    """The bytes of a request."""
    fields = {"Host": "localhost", **(headers or {})}
    if body:
        fields["Content-Length"] = str(len(body))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode() + body
