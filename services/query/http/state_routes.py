"""Which states there are, and how this instance stands to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from services.query.http.responses import json_response
from services.query.lookup.authentication import principal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from services.query.dependencies import Parts
    from services.query.lookup.authentication import Principal
    from services.query.lookup.state_reader import StateReader, StateReaders

PATH = "/v1/states"


class StateRoutes:
    """Lists the states that the token reaches."""

    def __init__(self, parts: Parts, holdings: StateReaders) -> None:
        self._parts = parts
        self._holdings = holdings

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routed."""
        return [web.get(PATH, self.get)]

    async def get(self, request: web.Request) -> web.Response:
        """The states by name, with schema, partitions, keys and lag."""
        who = principal(request)
        states = [self._told(held, who) for held in self._holdings.all() if who.reads(held.state.name)]
        return json_response({"instance": self._parts.settings.instance, "states": states}).response()

    def _told(self, held: StateReader, who: Principal) -> dict[str, Any]:
        """One state. How many keys it has is only for a holder who may read them all."""
        state, asked = held.state, held.state.query
        reads_all = who.reads_all(state.name)
        stands = [(one, self._parts.roles.standing(state.name, one)) for one in range(state.partitions)]
        return {
            "name": state.name,
            "topic": state.topic,
            "keys": held.store.keys() if reads_all else None,
            "lag": {"records": sum(standing.lag for _, standing in stands)},
            "partitions": [{"partition": one, "role": at.role, "lag": {"records": at.lag}} for one, at in stands],
            "misplaced": self._parts.misplaced.get(state.name, 0) if reads_all else None,
            "lifetime_s": None if state.lifetime is None else state.lifetime.total_seconds(),
            "stale_after_s": asked.stale_after.total_seconds(),
            "history": asked.history,
            "indexes": asked.indexes,
            "schema": state.schema,
        }
