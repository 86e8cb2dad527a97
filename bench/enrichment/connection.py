"""One connection of a client: it parses HTTP/1.1 requests without bodies, and nothing else."""

import asyncio
from typing import Protocol, cast

END = b"\r\n\r\n"


class ConnectionListener(Protocol):
    """Receives the events of connections."""

    def on_request(self, transport: asyncio.Transport, path: bytes) -> None:
        """A request for this path arrived."""

    def on_connect(self, transport: asyncio.Transport) -> None:
        """A client connected."""

    def on_disconnect(self, transport: asyncio.Transport) -> None:
        """A connection was closed."""


class ClientConnection(asyncio.Protocol):
    """Splits the received bytes into requests."""

    def __init__(self, listener: ConnectionListener) -> None:
        self._listener = listener
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)
        self._listener.on_connect(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # of the protocol
        """See `asyncio.Protocol`."""
        self._listener.on_disconnect(self._transport)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._rest += data
        while (end := self._rest.find(END)) >= 0:
            request, self._rest = self._rest[:end], self._rest[end + len(END) :]
            self._listener.on_request(self._transport, request.split(b" ", 2)[1])
