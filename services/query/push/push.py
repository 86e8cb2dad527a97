"""The piece of the service that tells clients what changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from services.query.push.limits import Limits
from services.query.push.sse import Events
from services.query.push.watching import Watching
from services.query.push.websocket import Sockets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from services.query.dependencies import Parts


class Push:
    """Its routes. `watching` is the Listener of the follower; its `run` is to end before the server does."""

    def __init__(self, parts: Parts, limits: Limits | None = None) -> None:
        self.watching = Watching(parts, limits or Limits.of(parts.settings))
        self._events = Events(parts, self.watching)
        self._sockets = Sockets(parts, self.watching, frozenset(parts.settings.origins))

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routed."""
        return [
            web.get("/v1/states/{name}/{key:[^/]+}/watch", self._events.watch, allow_head=False),
            web.get("/v1/watch", self._sockets.watch, allow_head=False),
        ]
