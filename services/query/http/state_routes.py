"""GET of the states: schema, partitions, lag, and what this instance is to each of them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from contracts.api.admin import STATES
from services.query.http.responses import json_response
from services.query.http.routes import route
from services.query.store.buckets import time_buckets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiohttp import web

    from contracts.model.named_state import NamedState
    from services.query.dependencies import Dependencies
    from services.query.http.requests import HttpRequest
    from services.query.http.responses import HttpResponse
    from services.query.lookup.authentication import Principal
    from services.query.lookup.state_reader import StateReader, StateReaders


class StateRoutes:
    """Lists the states in the scope of the token."""

    def __init__(self, dependencies: Dependencies, readers: StateReaders) -> None:
        self._dependencies = dependencies
        self._readers = readers

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [route(STATES, self.get)]

    async def get(self, request: HttpRequest) -> HttpResponse:
        """The states by name, with schema, partitions, keys and lag."""
        sender = request.sender
        states = [self._describe(one, sender) for one in self._readers.all() if sender.reads(one.state.name)]
        return json_response({"instance": self._dependencies.settings.instance, "states": states})

    def _describe(self, reader: StateReader, sender: Principal) -> dict[str, Any]:
        """One state. The number of its keys is only for a principal that may read them all."""
        state, options = reader.state, reader.state.query
        reads_all = sender.reads_all(state.name)
        by_partition = [
            (one, self._dependencies.routing.partition_status(state.name, one)) for one in range(state.partitions)
        ]
        return {
            "name": state.name,
            "topic": state.topic,
            "keys": reader.store.key_count() if reads_all else None,
            "lag": {"records": sum(partition_status.lag for _, partition_status in by_partition)},
            "partitions": [{"partition": one, "role": at.role, "lag": {"records": at.lag}} for one, at in by_partition],
            "misplaced": self._dependencies.misplaced.get(state.name, 0) if reads_all else None,
            "lifetime_s": None if state.lifetime is None else state.lifetime.total_seconds(),
            **_windows_of(state),
            "stale_after_s": options.stale_after.total_seconds(),
            "history": options.history,
            "indexes": options.indexes,
            "silence": options.silence,
            "coverage": [{"path": one.path, "step_s": one.step.total_seconds()} for one in state.coverage],
            "schema": state.schema,
        }


def _windows_of(state: NamedState) -> dict[str, float | None]:
    """The windows of a windowed state, in seconds; null in others."""
    if state.window is None:
        return {"window_s": None, "every_s": None, "remember_s": None}
    kept = timedelta(milliseconds=time_buckets(state).remembered)
    spans = {"window_s": state.window, "every_s": state.every or state.window, "remember_s": kept - state.window}
    return {name: span.total_seconds() for name, span in spans.items()}
