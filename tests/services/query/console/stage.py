"""An instance of the query service that serves the console over states in memory and a simulated loop."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from contracts import Suite
from contracts.model.named_state import QueryOptions
from examples.flights.application import app
from services.query.console.loops import Loops
from services.query.console.routes import Console
from services.query.http.assembly import state_api
from services.query.http.rule_test_routes import RuleTestRoutes
from services.query.http.server import HttpServer
from services.query.http.watch_routes import WatchRoutes
from services.query.limits import WatchLimits
from services.query.lookup.authentication import Authenticator
from services.query.store import Change, Entry, Update
from tests.services.query.console.flights import flight, key_of
from tests.services.query.console.observations import a_dead_letter, at_work
from tests.services.query.in_memory import MemoryRouting, a_state, dependencies_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from contracts.api.loop import DeadLetterSummary
    from services.query.console.observation import Observation
    from services.query.dependencies import Dependencies
    from services.query.http.server import Routes
    from services.query.http.table_routes import DeclaredTable

EVERY_S = 0.2
"""The interval at which the page polls."""
PAST_S = 60
"""The first seconds of the loop are in the past, so that the charts have a width. The later ones are now."""
FLIGHTS = Suite(app)


class Stage:
    """The states and loops of the console. The routes `instead` replace its own."""

    def __init__(  # noqa: PLR0913  # independent options with defaults
        self,
        *,
        tokens: Path | None = None,
        history: int = 10,
        suite: Suite = FLIGHTS,
        instead: Sequence[Routes] = (),
        dependencies: Dependencies | None = None,
        tables: Mapping[str, DeclaredTable] | None = None,
    ) -> None:
        self.state = a_state("flights", query=QueryOptions(history=history))
        in_memory = dependencies_of(self.state, a_state("tails"), routing=MemoryRouting(), tokens=tokens)
        self.dependencies = dependencies or in_memory
        self.loops = Loops(suite, EVERY_S)
        self.dead_letters = self.loops.all()[0].dead_letters
        self.push = WatchRoutes(self.dependencies, WatchLimits(mark_every_s=1))
        console = Console(self.loops)
        api = state_api(self.dependencies, Authenticator(tokens), None)
        tests = RuleTestRoutes(self.dependencies, api.readers, api.pages, tables or {})
        pieces: list[Routes] = [*instead, self.push, console, tests, *api.routes]
        self._server = HttpServer(self.dependencies, api.guard, pieces)
        self._offset = 0
        self._observed_s = 0
        self.base = ""

    def put(self, key: str, version: int, value: Any, state: str = "flights", *, epoch: int = 0) -> None:
        """Store a record and notify its watchers."""
        self._offset += 1
        now = round(datetime.now(UTC).timestamp() * 1000)
        entry = Entry(1_357_000_000_000, epoch, version, now, 0, self._offset, orjson.dumps(value))
        self.dependencies.stores[state].apply([Update(key, 0, self._offset, entry)], {0: self._offset + 1})
        self.push.service.changed([Change(state, key, entry)])

    def fly(self, number: int, version: int, *, epoch: int = 0) -> None:
        """Store this version of a flight."""
        self.put(key_of(number), version, flight(number, version), epoch=epoch)

    def remove(self, key: str, state: str = "flights") -> None:
        """Store a tombstone and notify the watchers."""
        self._offset += 1
        self.dependencies.stores[state].apply([Update(key, 0, self._offset, None)], {0: self._offset + 1})
        self.push.service.changed([Change(state, key, None)])

    def observe(self, observation: Observation) -> None:
        """Record an observation of the loop."""
        self.loops.record(observation)

    def work(self, seconds: int = PAST_S, **overrides: Any) -> None:
        """Record observations of the loop of flights for this many more seconds. `overrides` are those of `at_work`."""
        for at in range(self._observed_s, self._observed_s + seconds, 2):
            self.observe(at_work(at, until=max(at, PAST_S), **overrides))
        self._observed_s += seconds

    def dead_letter(self, head: str, reason: str = "malformed") -> DeadLetterSummary:
        """Return a dead letter of an event with this head, later than the one before."""
        self._offset += 1
        return a_dead_letter(self._offset, head, reason)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Stage]:
        """Serve on a free port."""
        running = asyncio.create_task(self.push.service.run())
        try:
            async with self._server.serving() as port:
                self.base = f"http://127.0.0.1:{port}"
                yield self
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
