"""A server that sends bytes that belong to no request."""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trustme

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

END = b"\r\n\r\n"


def named(target: str) -> bytes:
    """The right response to a target: it names it."""
    plate = target.rpartition("/")[2]
    body = json.dumps({"name": target, "plate": plate, "price": 1.5, "street": target}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


class Straying:
    """ResponseCache a request by the segments that `segments` makes of its target, and of the one before it."""

    def __init__(self, segments: Callable[[str, str | None], list[bytes]] = lambda target, _: [named(target)]) -> None:
        self.segments = segments
        self.url = ""
        self.trusted: ssl.SSLContext | None = None
        self.requests: list[tuple[int, str]] = []
        """Each with the number of its connection."""
        self.open: dict[int, asyncio.StreamWriter] = {}
        self._connections = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        number, before = self._connections, None
        self.open[number] = writer
        try:
            while True:
                target = (await reader.readuntil(END)).split()[1].decode()
                self.requests.append((number, target))
                for segment in self.segments(target, before):
                    writer.write(segment)
                    await writer.drain()
                    await asyncio.sleep(0.02)  # so that it is a segment of its own
                before = target
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            del self.open[number]
            writer.close()

    def send(self, stray: bytes) -> None:
        """Send bytes that belong to no request on each connection."""
        for writer in self.open.values():
            writer.write(stray)

    @asynccontextmanager
    async def serving(self, *, tls: bool = False) -> AsyncIterator[Straying]:
        context = None
        if tls:
            authority, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            authority.issue_cert("127.0.0.1").configure_cert(context)
            self.trusted = ssl.create_default_context()
            authority.configure_trust(self.trusted)
        async with await asyncio.start_server(self, "127.0.0.1", 0, ssl=context) as listening:
            self.url = f"http{'s' if tls else ''}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            yield self
