"""A transport that costs a quarter of the CPU that aiohttp does: no more of HTTP than calls to an API need."""

from __future__ import annotations

import asyncio
import socket
import ssl
from functools import partial
from typing import TYPE_CHECKING, Any

import aiohappyeyeballs
from typing_extensions import override

from services.enrichment.calls.connection import Connection, DisconnectedError
from services.enrichment.calls.transport import HEADERS, AiohttpTransport, checked_socket, unanswered

if TYPE_CHECKING:
    from services.enrichment.calls.transport import Response

NEXT_ADDRESS_S = 0.25
"""How long an address may be silent before the next one is tried beside it (RFC 8305)."""
LOOK_UP_S = 10.0
"""How long the addresses of a name are good for."""


class LeanTransport(AiohttpTransport):
    """One API over HTTP/1.1 connections of its own. An API with declared redirects is called by aiohttp."""

    def __init__(self, *args: Any, trusted: ssl.SSLContext | None = None, **kwargs: Any) -> None:
        super().__init__(*args, trusted=trusted, **kwargs)
        self._idle: list[Connection] = []
        self._places = asyncio.Semaphore(self._bounds.connections)
        self._tls = (trusted or ssl.create_default_context()) if self._origin.scheme == "https" else None
        self._found: tuple[float, list[aiohappyeyeballs.AddrInfoType]] = (0.0, [])
        self._looking = asyncio.Lock()
        self._path = self._base_path.encode("ascii")
        said = {"Host": self._origin.raw_authority, **HEADERS, **self._headers}
        lines = (" HTTP/1.1", *(f"{name}: {value}" for name, value in said.items()), "", "")
        self._rest = "\r\n".join(lines).encode("ascii")

    @override
    async def get(self, target: str, within: float) -> Response:
        """See `Transport.get`."""
        if self._bounds.redirects:
            return await super().get(target, within)
        request = b"GET " + self._path + target.encode("ascii") + self._rest
        until = asyncio.get_running_loop().time() + max(within, 0)
        try:
            response = await self._answered(request, until)
        except OSError as error:
            raise unanswered(error, within) from error
        self._check_body(response.body)
        return response

    async def _answered(self, request: bytes, until: float) -> Response:
        """The response, when there is a place. asyncio.timeout costs as much as a call: it is for what has to wait."""
        if self._places.locked():
            async with asyncio.timeout_at(until):
                await self._places.acquire()
        else:
            await self._places.acquire()
        try:
            return await self._asked(request, until)
        finally:
            self._places.release()

    async def _asked(self, request: bytes, until: float) -> Response:
        """The response, over a connection that was kept, or a new one where that has ended meanwhile."""
        while True:
            connection = self._taken()
            if connection is None:
                async with asyncio.timeout_at(until):
                    connection = await self._opened()
            try:
                return await connection.ask(request, until)
            except DisconnectedError as error:
                if not error.stale:
                    raise
            except BaseException:
                connection.close()
                raise

    def _taken(self) -> Connection | None:
        while self._idle:
            if (connection := self._idle.pop()).is_open:
                return connection
        return None

    async def _opened(self) -> Connection:
        """A new connection, to an address that may be called."""
        loop, host = asyncio.get_running_loop(), self._origin.raw_host if self._tls else None
        way = await aiohappyeyeballs.start_connection(
            await self._addresses(), happy_eyeballs_delay=NEXT_ADDRESS_S, socket_factory=self._socket
        )
        made = partial(Connection, self._bounds.largest, self._idle.append)
        _, connection = await loop.create_connection(made, sock=way, ssl=self._tls, server_hostname=host)
        return connection

    def _socket(self, info: aiohappyeyeballs.AddrInfoType) -> socket.socket:
        way = checked_socket(info, allowed=self._bounds.allowed)
        way.setblocking(False)  # noqa: FBT003  # it has no name for it
        return way

    async def _addresses(self) -> list[aiohappyeyeballs.AddrInfoType]:
        """Those of the API's host that may be called. Raises AddressRefusedError."""
        loop = asyncio.get_running_loop()
        async with self._looking:
            until, found = self._found
            if loop.time() > until:
                host, port = self._origin.host or "", self._origin.port or 0
                resolved = await self._resolver.resolve(host, port, socket.AF_UNSPEC)
                found = [_info(one["host"], port) for one in resolved]
                self._found = loop.time() + LOOK_UP_S, found
            return found

    @override
    async def close(self) -> None:
        for connection in self._idle:
            connection.close()
        await super().close()


def _info(host: str, port: int) -> aiohappyeyeballs.AddrInfoType:
    if ":" in host:
        return socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port, 0, 0)
    return socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port)
