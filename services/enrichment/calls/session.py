"""The aiohttp session of one API: where its connections lead, and which of them may carry a request.

A response does not name its request: the first response on a connection answers it. So a connection that received
another response, or bytes that are none, carries no further request.
"""

from __future__ import annotations

import select
import socket
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast
from weakref import WeakSet

from aiohttp import (
    ClientConnectionError,
    ClientConnectorError,
    ClientError,
    ClientPayloadError,
    ClientRequest,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)

from services.enrichment.calls.addresses import check
from services.enrichment.calls.response import BadResponseError, DisconnectedError, Response, check_size, decoded

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections.abc import Collection

    from aiohttp import AddrInfoType, ClientHandlerType
    from aiohttp.abc import AbstractResolver
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection

    from services.enrichment.calls.addresses import Network

IDLE_S = 15.0
"""The time for which an idle connection is reused: proxies drop connections that are silent for long."""


def open_session(
    connections: int, resolver: AbstractResolver, allowed: Collection[Network], trusted: ssl.SSLContext | None
) -> ClientSession:
    """Return a session of at most `connections` connections, without cookies, proxies and a timeout of its own.

    It opens no socket to a forbidden address: aiohttp does not resolve a literal, so the socket's address is checked.
    """
    connector = TCPConnector(
        limit=connections,
        keepalive_timeout=IDLE_S,
        resolver=resolver,
        socket_factory=partial(_open_checked_socket, allowed=allowed),
        ssl=trusted or True,
    )
    return ClientSession(
        connector=connector,
        request_class=CheckedRequest,
        response_class=CheckedResponse,
        middlewares=(send_checked,),
        timeout=ClientTimeout(),
        cookie_jar=DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        skip_auto_headers=("Accept-Encoding",),
    )


class UnusableConnectionError(Exception):
    """The connection received unrequested bytes, so nothing was sent on it."""


async def send_checked(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Send a request on one connection after the other, until one carries it.

    A request that a reused connection lost is sent again too: the server had closed the connection. aiohttp would
    repeat what a new connection lost, beyond the rate of the API. Raises DisconnectedError, BadResponseError.
    """
    while True:
        try:
            return await handler(request)
        except UnusableConnectionError:
            continue
        except ClientConnectorError:
            raise
        except ClientResponseError as error:
            raise BadResponseError(error.message) from _without_frames(error)
        except ClientConnectionError as error:
            if not cast("CheckedRequest", request).is_reusing or request.session.closed:
                raise DisconnectedError from error


class CheckedRequest(ClientRequest):
    """A request that is not sent on a connection with unrequested bytes."""

    _used: ClassVar[WeakSet[ResponseHandler]] = WeakSet()
    """The connections that have carried a request."""
    is_reusing = False
    """Whether its connection had carried another request."""

    async def send(self, conn: Connection) -> ClientResponse:
        """See aiohttp. Raises UnusableConnectionError before it sends."""
        protocol, transport = conn.protocol, conn.transport
        self.is_reusing = protocol in self._used
        if protocol is None or transport is None:
            raise DisconnectedError
        if self.is_reusing and (protocol.should_close or _has_unread_bytes(transport)):
            raise UnusableConnectionError
        if protocol.should_close:
            raise BadResponseError("a response came before its request")
        self._used.add(protocol)
        return await super().send(conn)


class CheckedResponse(ClientResponse):
    """A response that is the only one to its request."""

    async def start(self, connection: Connection) -> ClientResponse:
        """See aiohttp."""
        self.protocol = cast("ResponseHandler", connection.protocol)
        self.transport = cast("asyncio.Transport", connection.transport)
        return await super().start(connection)

    async def receive(self, largest: int) -> Response:
        """Return the whole response. Raises DisconnectedError, BadResponseError, PermanentCallError."""
        try:
            body = await self._received(largest)
        except ClientPayloadError as error:
            kind = BadResponseError if self._is_followed() else DisconnectedError
            raise kind(str(error)) from _without_frames(error)
        except Exception:
            self.transport.abort()
            raise
        retry_after, location = self.headers.get("Retry-After"), self.headers.get("Location")
        return Response(self.status, body, retry_after, location, self.transport.abort)

    async def _received(self, largest: int) -> bytes:
        """The decoded body."""
        chunks, size = [], 0
        while not self.content.at_eof():
            chunk = await self.content.readany()
            size += len(chunk)
            check_size(size, largest)
            chunks.append(chunk)
        if self._is_followed():
            raise BadResponseError("more than one response came to one request")
        body, encoding = b"".join(chunks), self.headers.get("Content-Encoding", "identity").lower()
        return decoded(body, encoding, largest) if body and encoding != "identity" else body

    def _is_followed(self) -> bool:
        """Return whether bytes came with the response that do not belong to it."""
        error = self.protocol.exception()
        is_invalid = error is not None and not isinstance(error, ClientConnectionError)
        return is_invalid or self.protocol.upgraded or len(self.protocol) > 0


def _without_frames(error: ClientError) -> ClientError:
    """Remove the tracebacks of an error and its causes: their frames reference the error, and the received bytes."""
    cause: BaseException | None = error
    while cause is not None:
        cause.__traceback__, cause = None, cause.__cause__
    return error


def _has_unread_bytes(transport: asyncio.Transport) -> bool:
    """Return whether the socket has bytes, or an end, that the event loop has not read yet."""
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _open_checked_socket(info: AddrInfoType, *, allowed: Collection[Network]) -> socket.socket:
    """Open a socket for an address, after its last check: no connection bypasses it."""
    family, kind, protocol, _, address = info
    check(str(address[0]), allowed)
    return socket.socket(family=family, type=kind, proto=protocol)
