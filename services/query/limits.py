"""Limits of the connections that watch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WatchLimits:
    """Limits of one client, unless a field's description differs. Times are in seconds."""

    waiting_keys: int = 10_000
    """Keys that may wait for one client; beyond it, the client must read again."""
    all_waiting_bytes: int = 256 * 1024 * 1024
    """Bytes of what waits for all clients, 1 KiB for each key; beyond it, the slowest clients are disconnected."""
    remembered: int = 10_000
    """Keys of which a subscription remembers the delivered version."""
    subscriptions: int = 100
    """Subscriptions of one WebSocket."""
    connections: int = 2_000
    """Open connections of one token, or of all clients where no token is needed."""
    message_bytes: int = 64 * 1024
    """Bytes of a command."""
    mark_every_s: float = 5.0
    """How often a client receives a mark, which also shows that the connection is alive."""
    stalled_s: float = 60.0
    """How long, at most twice as long, a client may read nothing of what is unsent before it is disconnected."""

    @property
    def relayed_keys(self) -> int:
        """Keys that may wait for another instance: one of an earlier release has one connection for all its clients."""
        return 10 * self.waiting_keys
