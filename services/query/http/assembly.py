"""The API of states, put together: what service.py adds to the server as its pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.http.batch_routes import BatchRoutes
from services.query.http.forwarding import Forwarder
from services.query.http.key_routes import KeyRoutes
from services.query.http.page_routes import PageRoutes
from services.query.http.state_routes import StateRoutes

if TYPE_CHECKING:
    from services.query.dependencies import Parts, PeerClient, Routes
    from services.query.http.request_guard import RequestGuard
    from services.query.lookup.key_waiters import KeyWaiters
    from services.query.lookup.state_reader import StateReaders


def state_api(
    parts: Parts, holdings: StateReaders, waits: KeyWaiters, gate: RequestGuard, proxy: PeerClient | None
) -> list[Routes]:
    """What answers below /v1/states."""
    elsewhere = Forwarder(parts, proxy)
    return [
        StateRoutes(parts, holdings),
        BatchRoutes(parts, holdings, elsewhere, gate),
        PageRoutes(parts, holdings, elsewhere, gate),
        KeyRoutes(parts, holdings, elsewhere, waits),
    ]
