"""The routes of push: server-sent events for one key, a WebSocket for many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.api.watch import WATCH_KEY, WATCH_MANY
from services.query.http.routes import stream_route
from services.query.http.sse import EventStreams
from services.query.http.websocket import WebSockets
from services.query.push.push_service import PushService

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiohttp import web

    from services.query.dependencies import Dependencies
    from services.query.limits import WatchLimits


class WatchRoutes:
    """The routes. `service` takes the changes of the stores; its `run` must end before the server does."""

    def __init__(self, dependencies: Dependencies, limits: WatchLimits | None = None) -> None:
        self.service = PushService(dependencies, limits or dependencies.settings.watch_limits())
        self._events = EventStreams(dependencies, self.service)
        self._sockets = WebSockets(dependencies, self.service, frozenset(dependencies.settings.origins))

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [
            stream_route(WATCH_KEY, self._events.watch),
            stream_route(WATCH_MANY, self._sockets.watch),
        ]
