"""One connection of a client: requests in, in HTTP/1.1 and without bodies, and nothing else understood."""

import asyncio
from typing import Protocol, cast

END = b"\r\n\r\n"


class Asked(Protocol):
    """Is told of what happens on connections."""

    def asked(self, transport: asyncio.Transport, path: bytes) -> None:
        """A request for this path came."""

    def opened(self, transport: asyncio.Transport) -> None:
        """A client connected."""

    def closed(self, transport: asyncio.Transport) -> None:
        """A connection is gone."""


class Connection(asyncio.Protocol):
    """Splits what comes into requests."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)
        self._asked.opened(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # of the protocol
        """See `asyncio.Protocol`."""
        self._asked.closed(self._transport)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._rest += data
        while (end := self._rest.find(END)) >= 0:
            request, self._rest = self._rest[:end], self._rest[end + len(END) :]
            self._asked.asked(self._transport, request.split(b" ", 2)[1])
