"""The API of states, put together: what service.py adds to the server as its pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.api.batch import Batches
from services.query.api.elsewhere import Elsewhere
from services.query.api.listing import Listing
from services.query.api.pages import Pages
from services.query.api.single import Single

if TYPE_CHECKING:
    from services.query.api.gate import Gate
    from services.query.api.held import Holdings
    from services.query.api.waits import Waits
    from services.query.dependencies import Parts, Proxy, Routed


def states(parts: Parts, holdings: Holdings, waits: Waits, gate: Gate, proxy: Proxy | None) -> list[Routed]:
    """What answers below /v1/states."""
    elsewhere = Elsewhere(parts, proxy)
    return [
        Listing(parts, holdings),
        Batches(parts, holdings, elsewhere, gate),
        Pages(parts, holdings, elsewhere, gate),
        Single(parts, holdings, elsewhere, waits),
    ]
