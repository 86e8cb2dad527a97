"""How much one client may cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.query.settings import QuerySettings


@dataclass(frozen=True)
class WatchLimits:
    """Bounds of connections that are told of changes. Times are in seconds."""

    waiting_keys: int = 10_000
    """How many keys may wait for one client; beyond it, it has to read anew."""
    waiting_bytes: int = 4 * 1024 * 1024
    """The same in bytes of their values."""
    all_waiting_bytes: int = 256 * 1024 * 1024
    """How many bytes may wait for all clients together, with 1 KiB for each key; beyond it the slowest are cut off."""
    remembered: int = 10_000
    """Of how many keys a subscription remembers what was told."""
    subscriptions: int = 100
    """How many subscriptions one WebSocket may have."""
    connections: int = 2_000
    """How many connections one token may have open, or where no token is needed, everybody together."""
    message_bytes: int = 64 * 1024
    """How long a client's message may be."""
    mark_every_s: float = 5.0
    """How often a client is told how far it is behind; so it also sees that the connection lives."""
    stalled_s: float = 60.0
    """After how long a connection is closed whose client takes nothing."""

    @classmethod
    def of(cls, settings: QuerySettings) -> WatchLimits:
        """Those that an instance was told."""
        return cls(
            waiting_keys=settings.watch_waiting,
            waiting_bytes=settings.watch_waiting_bytes,
            all_waiting_bytes=settings.watch_all_waiting_bytes,
            subscriptions=settings.watch_subscriptions,
            connections=settings.watch_connections,
            mark_every_s=settings.watch_marks.total_seconds(),
            stalled_s=settings.watch_stalled.total_seconds(),
        )

    def relayed(self) -> WatchLimits:
        """Those of another instance, which stands for many clients."""
        return replace(self, waiting_keys=10 * self.waiting_keys, waiting_bytes=16 * self.waiting_bytes)
