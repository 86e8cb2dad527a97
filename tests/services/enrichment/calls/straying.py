"""A server that sends bytes that belong to no request."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trustme

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

END = b"\r\n\r\n"
LENGTH = re.compile(rb"Content-Length: (\d+)")
TURNS = 20
"""The turns of the event loop after which it has read what is in its sockets."""


async def read_everything() -> None:
    """Let the event loop read what its sockets have received: bytes between processes of one machine need no time."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


def named(target: str) -> bytes:
    """The right response to a target: it names it."""
    plate = target.rpartition("/")[2]
    body = json.dumps({"name": target, "plate": plate, "price": 1.5, "street": target}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


class Straying:
    """Answers a request by the segments that `segments` makes of its target, and of the one before it.

    `closes`: after a response it closes the connection, without an announcement.
    """

    def __init__(
        self,
        segments: Callable[[str, str | None], list[bytes]] = lambda target, _: [named(target)],
        *,
        closes: bool = False,
    ) -> None:
        self.segments = segments
        self.closes = closes
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
                head = await reader.readuntil(END)
                target = head.split()[1].decode()
                await reader.readexactly(sum(int(length) for length in LENGTH.findall(head)))
                self.requests.append((number, target))
                for segment in self.segments(target, before):
                    writer.write(segment)
                    await writer.drain()
                    if not self.closes:
                        await asyncio.sleep(0.02)  # so that it is a segment of its own
                before = target
                if self.closes:
                    return
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
