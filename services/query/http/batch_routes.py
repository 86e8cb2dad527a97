"""Many keys in one question."""

from __future__ import annotations

import asyncio
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

import orjson
from aiohttp import web

from contracts.metrics import query as metrics
from services.query.dependencies import HOP, ForwardedRequest
from services.query.http.forwarding import sequence_response
from services.query.http.parameters import BatchRequest, validate
from services.query.http.responses import JSON, uncached_response
from services.query.http.retry import OF_KEY, RetryBudget
from services.query.lookup.authentication import principal
from services.query.lookup.problem import Problem, ProblemError
from services.query.lookup.projection import parse_paths, project

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from services.query.cluster.routing import Member
    from services.query.dependencies import Parts
    from services.query.http.forwarding import Forwarder
    from services.query.http.request_guard import RequestGuard
    from services.query.http.responses import HttpResponse
    from services.query.lookup.authentication import Principal
    from services.query.lookup.state_reader import LookupResult, StateReader, StateReaders

PATH = "/v1/states/{name}:batchGet"


class Unresolved(NamedTuple):
    """A key that another instance answers for, and what is said if nobody asks it."""

    partition: int
    told: bytes


class BatchRoutes:
    """Answers in the order of the keys, each as if it were alone."""

    def __init__(self, parts: Parts, holdings: StateReaders, elsewhere: Forwarder, gate: RequestGuard) -> None:
        self._parts = parts
        self._gate = gate
        self._holdings = holdings
        self._elsewhere = elsewhere

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routed."""
        return [web.post(PATH, self.post)]

    async def post(self, request: web.Request) -> web.Response:
        """An answer or a problem for each key."""
        who = principal(request)
        held = self._holdings.held(request.match_info["name"], who)
        wanted = self.read(await request.read())
        self._gate.charge(request, len(wanted.keys))
        found = self.local(held, who, wanted)
        if self._elsewhere.may_ask(request):
            await self._complete(held, wanted, found)
            await self._settle(held, who, wanted, found, RetryBudget(request, self._parts.clock))
        return batch_reply(found, handed_on=HOP in request.headers).response()

    async def _settle(
        self,
        held: StateReader,
        who: Principal,
        wanted: BatchRequest,
        found: list[bytes | Unresolved],
        patience: RetryBudget,
    ) -> None:
        """Ask again for what goes from one instance to another just now."""
        while moving := [at for at, one in enumerate(found) if isinstance(one, bytes) and one.startswith(OF_KEY)]:
            if not await patience.lasts():
                return
            again = wanted.model_copy(update={"keys": tuple(wanted.keys[at] for at in moving)})
            some = self.local(held, who, again)
            await self._complete(held, again, some)
            for at, one in zip(moving, some, strict=True):
                found[at] = one

    def read(self, body: bytes) -> BatchRequest:
        """The question. Raises ProblemError (400, 413)."""
        try:
            said = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise ProblemError(Problem("bad_request", f"The body is no JSON: {error.msg}")) from None
        keys, most = said.get("keys") if isinstance(said, dict) else None, self._parts.settings.batch_most
        if isinstance(keys, list) and len(keys) > most:
            raise ProblemError(Problem("too_large", f"{len(keys)} keys, where {most} are answered at a time"))
        return validate(BatchRequest, said)

    def local(self, held: StateReader, who: Principal, wanted: BatchRequest) -> list[bytes | Unresolved]:
        """What this instance says of each key, as JSON; or where that is. Keys beyond the scope are not looked up."""
        keys, name = wanted.keys, held.state.name
        self._parts.counts.add(metrics.KEYS, name, by=len(keys))
        if who.reads_all(name):
            return self._read(held, keys, wanted.fields)
        allowed = [who.reads_key(name, key) for key in keys]
        found = iter(self._read(held, list(compress(keys, allowed)), wanted.fields))
        denied = Problem("not_yours", f"{who.name} may not read it")
        return [next(found) if may else _told(key, denied) for key, may in zip(keys, allowed, strict=True)]

    def _read(self, held: StateReader, keys: Sequence[str], fields: str | None) -> list[bytes | Unresolved]:
        """The same of keys that the holder may read. Of none, the store is not read."""
        now = self._parts.now()
        if not keys:
            return []
        if fields is not None:
            wanted = parse_paths(fields)
            return [_said(held, key, one, now, wanted) for key, one in zip(keys, held.looks(keys), strict=True)]
        told = zip(keys, held.told(keys, now), strict=True)
        return [one if isinstance(one, bytes) else _said(held, key, one, now) for key, one in told]

    async def _complete(self, held: StateReader, wanted: BatchRequest, found: list[bytes | Unresolved]) -> None:
        """Ask the others, all at once, for what is theirs."""
        theirs: dict[Sequence[Member], list[int]] = {}
        for at, one in enumerate(found):
            if not isinstance(one, bytes):
                try:
                    members = tuple(self._elsewhere.owners(held.state.name, one.partition))
                except ProblemError as error:
                    found[at] = _told(wanted.keys[at], error.problem)
                    continue
                theirs.setdefault(members, []).append(at)
        asked = [self._asked(members, held, wanted, places) for members, places in theirs.items()]
        for answers in await asyncio.gather(*asked):
            for at, answer in answers.items():
                found[at] = answer

    async def _asked(
        self, members: Sequence[Member], held: StateReader, wanted: BatchRequest, places: Sequence[int]
    ) -> Mapping[int, bytes]:
        """What others say of the keys at these places; where they cannot be reached, each gets that problem."""
        body = orjson.dumps({"keys": [wanted.keys[at] for at in places], "fields": wanted.fields})
        target = f"/v1/states/{held.state.name}:batchGet"
        try:
            question = ForwardedRequest(target, "POST", (("Content-Type", JSON),), body)
            answers = await self._elsewhere.several(members, question, len(places))
        except ProblemError as error:
            return {at: _told(wanted.keys[at], error.problem) for at in places}
        return dict(zip(places, answers, strict=True))


def batch_reply(found: Sequence[bytes | Unresolved], *, handed_on: bool) -> HttpResponse:
    """The answers together. What nobody else was asked for is said to be elsewhere."""
    texts = [one if isinstance(one, bytes) else one.told for one in found]
    return sequence_response(texts) if handed_on else uncached_response(b'{"answers":[%b]}' % b",".join(texts))


def _said(
    held: StateReader, key: str, looked: LookupResult, now: int, fields: Sequence[tuple[str, ...]] | None = None
) -> bytes | Unresolved:
    """The answer or the problem of one key, with all of the value or these fields."""
    outcome, standing, number = looked
    if isinstance(outcome, Problem):
        told = orjson.dumps(held.form.about(key, outcome, standing).members())
        return Unresolved(number, told) if outcome.kind == "elsewhere" else told
    try:
        part = None if fields is None else project(outcome.entry.value, fields)
    except ProblemError as error:
        return _told(key, error.problem)
    return held.form.body(key, outcome.entry, standing, now, part)


def _told(key: str, problem: Problem) -> bytes:
    return orjson.dumps(problem.members() | {"key": key})
