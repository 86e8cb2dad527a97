"""The piece of the service that tells clients what changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from services.query.http.sse import EventStreams
from services.query.http.websocket import WebSockets
from services.query.limits import WatchLimits
from services.query.push.push_service import PushService

if TYPE_CHECKING:
    from collections.abc import Iterable

    from services.query.dependencies import Parts


class WatchRoutes:
    """Its routes. `watching` is the Listener of the follower; its `run` is to end before the server does."""

    def __init__(self, parts: Parts, limits: WatchLimits | None = None) -> None:
        self.watching = PushService(parts, limits or WatchLimits.of(parts.settings))
        self._events = EventStreams(parts, self.watching)
        self._sockets = WebSockets(parts, self.watching, frozenset(parts.settings.origins))

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routed."""
        return [
            web.get("/v1/states/{name}/{key:[^/]+}/watch", self._events.watch, allow_head=False),
            web.get("/v1/watch", self._sockets.watch, allow_head=False),
        ]
