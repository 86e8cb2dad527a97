"""One key: its present entry, an earlier version, or all versions that are kept."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from contracts.metrics import query as metrics
from services.query.http.parameters import KeyParameters, VersionsParameters, key_of_request, parse_query
from services.query.http.responses import JSON, HttpResponse
from services.query.http.retry import WAITED
from services.query.lookup.authentication import principal
from services.query.lookup.decision import Conditions, FoundEntry
from services.query.lookup.problem import Problem, ProblemError
from services.query.lookup.projection import parse_paths, project

if TYPE_CHECKING:
    from collections.abc import Iterable

    from services.query.dependencies import Parts
    from services.query.http.forwarding import Forwarder
    from services.query.lookup.key_waiters import KeyWaiters
    from services.query.lookup.state_reader import LookupResult, StateReader, StateReaders

UNTIL = web.RequestKey("until", float)
"""By the instance's clock: how long a request may wait."""
PATH = "/v1/states/{name}/{key:[^/]+}"


class KeyRoutes:
    """Answers about one key."""

    def __init__(self, parts: Parts, holdings: StateReaders, elsewhere: Forwarder, waits: KeyWaiters) -> None:
        self._parts = parts
        self._holdings = holdings
        self._elsewhere = elsewhere
        self._waits = waits

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routed."""
        return [web.get(PATH, self.get), web.get(f"{PATH}/versions", self.versions)]

    async def get(self, request: web.Request) -> web.Response:
        """The key's entry, when it is as the conditions want it."""
        held, key, wanted = self._of(request), key_of_request(request), parse_query(KeyParameters, request)
        if wanted.wait > (most := self._parts.settings.wait_most.total_seconds()):
            raise ProblemError(Problem("bad_request", f"wait: {most:g} seconds at the most"))
        conditions = Conditions(request.headers.get("If-None-Match"), wanted.at_least, wanted.exactly)
        if wanted.event is not None:
            conditions = conditions._replace(event_offset=held.event_offset(key, wanted.event))
        request.setdefault(UNTIL, self._parts.clock() + wanted.wait)  # tried again, it has no more time
        found = await self._waited(request, held, key, conditions)
        if _elsewhere(found) and self._elsewhere.may_ask(request):
            return (await self._asked(request, held, found.partition)).response()
        return self._reply(held, key, found, wanted.fields).response()

    async def versions(self, request: web.Request) -> web.Response:
        """All versions that are kept of the key's present life, the earliest first."""
        held, key, wanted = self._of(request), key_of_request(request), parse_query(VersionsParameters, request)
        found, kept = held.kept(key)
        if _elsewhere(found) and self._elsewhere.may_ask(request):
            return (await self._elsewhere.read(request, held.state.name, found.partition)).response()
        if isinstance(found.outcome, Problem):
            return held.form.problem(key, found.outcome, found.standing).response()
        form, now = held.form, self._parts.now()
        answers = (form.body(key, one, found.standing, now, _part(one.value, wanted.fields)) for one in kept)
        headers = form.headers(found.outcome.entry.tag, found.standing.role.value, str(found.standing.lag))
        body = b'{"versions":[%b]}' % b",".join(answers)
        return HttpResponse(200, (("Content-Type", JSON), *headers), body).response()

    def _of(self, request: web.Request) -> StateReader:
        """The state that the request is about, if its holder may read the key."""
        who = principal(request)
        held = self._holdings.held(request.match_info["name"], who)
        who.check(held.state.name, key_of_request(request))
        self._parts.counts.add(metrics.KEYS, held.state.name)
        return held

    async def _waited(self, request: web.Request, held: StateReader, key: str, conditions: Conditions) -> LookupResult:
        """What is said once there is what the client waits for, the time is over, or another instance answers."""
        while True:
            found = held.look(key, conditions)
            left_s = request[UNTIL] - self._parts.clock()
            if left_s <= 0 or not _may_change(found):
                return found
            await self._waits.change(held.state.name, key, left_s, partial(held.is_here, found.partition))
            request[WAITED] = self._parts.clock()

    async def _asked(self, request: web.Request, held: StateReader, partition: int) -> HttpResponse:
        """What another instance says, which waits too. Raises ProblemError (503)."""
        left_s = max(0.0, request[UNTIL] - self._parts.clock())
        try:
            return await self._elsewhere.read(request, held.state.name, partition, left_s)
        finally:
            if left_s:  # once: who is cut off from the others does not hold the client for all of its time
                request.setdefault(WAITED, min(self._parts.clock(), request[UNTIL]))

    def _reply(self, held: StateReader, key: str, found: LookupResult, fields: str | None) -> HttpResponse:
        if isinstance(found.outcome, Problem):
            return held.form.problem(key, found.outcome, found.standing)
        value = None if found.outcome.unchanged else _part(found.outcome.entry.value, fields)
        return held.form.found(key, found.outcome, found.standing, self._parts.now(), value)


def _part(value: bytes, fields: str | None) -> bytes | None:
    """What is wanted of the value; None: all of it."""
    return None if fields is None else project(value, parse_paths(fields))


def _may_change(found: LookupResult) -> bool:
    """Whether the next record may bring what the client waits for."""
    outcome = found.outcome
    return outcome.unchanged if isinstance(outcome, FoundEntry) else outcome.kind == "behind"


def _elsewhere(found: LookupResult) -> bool:
    return isinstance(found.outcome, Problem) and found.outcome.kind == "elsewhere"
