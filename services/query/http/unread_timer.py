"""Disconnects a client that reads nothing of what is sent to it."""

from __future__ import annotations

import asyncio
import socket
from struct import unpack_from

ACKNOWLEDGED = 120
"""The offset of `tcpi_bytes_acked` (u64) in Linux's `struct tcp_info`, and with 8 bytes more the size to request."""


class UnreadTimer:
    """Aborts a connection while bytes are unsent and its client takes none of them for `after_s` to twice as long.

    A client that reads slowly gets everything. A transport that closes waits until all is sent: the protocol starts the
    timer in `connection_made` and cancels it in `connection_lost`, not before.
    """

    def __init__(self, transport: asyncio.Transport, after_s: float) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._start(after_s)

    def restart(self, after_s: float) -> None:
        """Start again with another time."""
        self.cancel()
        self._start(after_s)

    def cancel(self) -> None:
        """Leave the connection open."""
        self._timer.cancel()

    def _start(self, after_s: float) -> None:
        self._after_s = after_s
        self._look(None)

    def _look(self, before: int | None) -> None:
        """Abort the connection if the client has taken nothing since bytes were unsent before."""
        unsent = self._transport.get_write_buffer_size()
        taken = (acknowledged(self._transport) or unsent) if unsent else None
        if taken is not None and taken == before:
            self._transport.abort()
        else:
            self._timer = self._loop.call_later(self._after_s, self._look, taken)


def acknowledged(transport: asyncio.Transport) -> int:
    """The bytes that the client's system has acknowledged; 0 where they are not known.

    The write buffer shows much less: a socket takes the next bytes when a third of its own buffer of megabytes is free.
    """
    found = transport.get_extra_info("socket")
    if found is None or not hasattr(socket, "TCP_INFO"):
        return 0
    info = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, ACKNOWLEDGED + 8)
    return int(unpack_from("=Q", info, ACKNOWLEDGED)[0]) if len(info) == ACKNOWLEDGED + 8 else 0
