"""Writes to one client no faster than it reads, so that queued values can still be replaced by later ones."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.abc import AbstractStreamWriter

    from services.query.http.connection import AiohttpConnection

UNSENT_BYTES = 16 * 1024
"""Bytes that may be unsent, in the transport and again in the socket."""


class ClientWriter:
    """Implements StreamWriter for one connection. A client that reads nothing for `stalled_s` is disconnected."""

    def __init__(self, request: web.Request, writer: AbstractStreamWriter | None, stalled_s: float) -> None:
        if request.transport is None or writer is None:
            raise ConnectionResetError("the client is gone")
        self._transport = request.transport
        self._writer = writer
        cast("AiohttpConnection", request.protocol).unread.restart(stalled_s)
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
        """Wait until the client has read most of it. Raises ConnectionResetError when it is gone."""
        if self.is_writable:
            await asyncio.sleep(0)
        else:
            await self._writer.drain()
