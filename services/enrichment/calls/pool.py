"""The connection pool of one host."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

import aiohappyeyeballs

from services.enrichment.calls.addresses import check
from services.enrichment.calls.connection import Connection
from services.enrichment.calls.response import DisconnectedError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Collection

    from aiohappyeyeballs import AddrInfoType
    from yarl import URL

    from services.enrichment.calls.addresses import Network
    from services.enrichment.calls.resolver import CheckedResolver
    from services.enrichment.calls.response import Response

NEXT_ADDRESS_S = 0.25
"""The time after which the next address is tried in parallel (RFC 8305)."""
LOOK_UP_S = 10.0
"""The time for which resolved addresses are cached."""
IDLE_S = 15.0
"""The time for which an idle connection is reused: proxies drop connections that are silent for long."""


class ConnectionPool:
    """At most `connections` connections to an origin, each to an address that may be called."""

    def __init__(  # noqa: PLR0913  # the limits of each connection
        self,
        origin: URL,
        *,
        connections: int,
        largest: int,
        resolver: CheckedResolver,
        allowed: Collection[Network],
        trusted: ssl.SSLContext,
    ) -> None:
        self._origin = origin
        self._largest = largest
        self._resolver = resolver
        self._open_socket = partial(_checked_socket, allowed=allowed)
        self._tls = trusted if origin.scheme == "https" else None
        self._idle: deque[tuple[float, Connection]] = deque()
        self._slots = asyncio.Semaphore(connections)
        self._found: tuple[float, deque[AddrInfoType]] = (0.0, deque())
        self._looking = asyncio.Lock()
        self._is_closed = False
        self._time = asyncio.get_running_loop().time

    async def request(self, request: bytes, until: float) -> Response:
        """Send a request; return its response by this time of the event loop. Raises OSError, or PermanentCallError.

        asyncio.timeout costs as much as a call, so only calls that must wait use it.
        """
        if self._slots.locked():
            async with asyncio.timeout_at(until):
                await self._slots.acquire()
        else:
            await self._slots.acquire()
        try:
            return await self._send(request, until)
        finally:
            self._slots.release()

    def close(self) -> None:
        """Close the idle connections now, and the others after their calls."""
        self._is_closed = True
        for _, connection in self._idle:
            connection.close()
        self._idle.clear()

    async def _send(self, request: bytes, until: float) -> Response:
        """Send a request over an idle connection, over another one if that was closed, or over a new one."""
        while True:
            connection = self._reused()
            if connection is None:
                async with asyncio.timeout_at(until):
                    connection = await self._opened()
            try:
                return await connection.request(request, until)
            except DisconnectedError as error:
                if not error.stale:
                    raise
            except BaseException:
                connection.close()
                raise

    def _reused(self) -> Connection | None:
        """The connection that is idle longest: stray bytes had most time to arrive on it."""
        while self._idle:
            since, connection = self._idle.popleft()
            if self._time() - since <= IDLE_S and connection.is_reusable():
                return connection
            connection.close()
        return None

    def _keep(self, connection: Connection) -> None:
        if self._is_closed:
            connection.close()
            return
        self._idle.append((self._time(), connection))

    async def _opened(self) -> Connection:
        loop, host = asyncio.get_running_loop(), self._origin.raw_host if self._tls else None
        opened = await aiohappyeyeballs.start_connection(
            await self._addresses(), happy_eyeballs_delay=NEXT_ADDRESS_S, socket_factory=self._open_socket
        )
        made = partial(Connection, self._largest, self._keep)
        _, connection = await loop.create_connection(made, sock=opened, ssl=self._tls, server_hostname=host)
        return connection

    async def _addresses(self) -> list[AddrInfoType]:
        """The allowed addresses of the host, rotated. Raises AddressRefusedError."""
        async with self._looking:
            until, found = self._found
            if self._time() > until:
                host, port = self._origin.host or "", self._origin.port or 0
                resolved = await self._resolver.resolve(host, port, socket.AF_UNSPEC)
                found = deque(_info(one["host"], port) for one in resolved)
                self._found = self._time() + LOOK_UP_S, found
            found.rotate(-1)
            return list(found)


def _info(host: str, port: int) -> AddrInfoType:
    if ":" in host:
        return socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port, 0, 0)
    return socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port)


def _checked_socket(info: AddrInfoType, *, allowed: Collection[Network]) -> socket.socket:
    """Open a socket for a resolved address, after the last check: no connection bypasses it."""
    family, kind, protocol, _, address = info
    check(str(address[0]), allowed)
    opened = socket.socket(family=family, type=kind, proto=protocol)
    opened.setblocking(False)  # noqa: FBT003  # positional only
    return opened
