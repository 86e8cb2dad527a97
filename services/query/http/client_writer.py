"""Writes to one client no faster than it reads, so that queued values can still be replaced by later ones."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.abc import AbstractStreamWriter

UNSENT_BYTES = 16 * 1024
"""Bytes that may be unsent, in the transport and again in the socket."""


class ClientWriter:
    """Implements StreamWriter for one connection. `stalled_s` is how long it waits for a client that reads nothing."""

    def __init__(self, request: web.Request, writer: AbstractStreamWriter | None, stalled_s: float) -> None:
        if request.transport is None or writer is None:
            raise ConnectionResetError("the client is gone")
        self._transport = request.transport
        self._writer = writer
        self._stalled_s = stalled_s
        self._transport.set_write_buffer_limits(UNSENT_BYTES)
        found = self._transport.get_extra_info("socket")
        if found is not None and hasattr(socket, "TCP_NOTSENT_LOWAT"):
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)

    @property
    def is_writable(self) -> bool:
        """Whether the client reads what is written. Raises ConnectionResetError when it is gone."""
        if self._transport.is_closing():
            raise ConnectionResetError("the client is gone")
        return self._transport.get_write_buffer_size() <= UNSENT_BYTES

    def write(self, data: bytes) -> None:
        """Write complete frames or chunks, past aiohttp, which would wait and count at each of them."""
        self._transport.write(data)

    async def drain(self) -> None:
        """Wait until the client has read most of it. Raises ConnectionResetError when it does not."""
        if self.is_writable:
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(self._stalled_s):
                await self._writer.drain()
        except TimeoutError:
            self._transport.abort()
            raise ConnectionResetError("the client reads nothing") from None
