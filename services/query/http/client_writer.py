"""Writes to one client no faster than it takes, so that what waits can still be replaced by something later."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.abc import AbstractStreamWriter

HELD_BYTES = 16 * 1024
"""How much may be written that the system has not sent yet, here and there."""


class ClientWriter:
    """One connection. `stalled_s` is how long it waits for a client that takes nothing."""

    def __init__(self, request: web.Request, writer: AbstractStreamWriter | None, stalled_s: float) -> None:
        if request.transport is None or writer is None:
            raise ConnectionResetError("the client has gone")
        self._transport = request.transport
        self._writer = writer
        self._stalled_s = stalled_s
        self._transport.set_write_buffer_limits(HELD_BYTES)
        found = self._transport.get_extra_info("socket")
        if found is not None and hasattr(socket, "TCP_NOTSENT_LOWAT"):
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, HELD_BYTES)

    @property
    def free(self) -> bool:
        """Whether the client takes what is written. Raises ConnectionResetError when it has gone."""
        if self._transport.is_closing():
            raise ConnectionResetError("the client has gone")
        return self._transport.get_write_buffer_size() <= HELD_BYTES

    def write(self, data: bytes) -> None:
        """Write whole frames, or chunks: past aiohttp, which waits and counts at each of them."""
        self._transport.write(data)

    async def flush(self) -> None:
        """Wait until the client has taken most of it, and for others' turn. Raises ConnectionResetError when not."""
        if self.free:
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(self._stalled_s):
                await self._writer.drain()
        except TimeoutError:
            self._transport.abort()
            raise ConnectionResetError("the client takes nothing") from None
