"""Keys in their order, a page at a time, from all instances that hold some of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

import orjson
from aiohttp import web

from services.query.cluster.routing import Role
from services.query.dependencies import HOP, ForwardedRequest
from services.query.http.forwarding import sequence_response
from services.query.http.parameters import PageParameters, parse_query
from services.query.http.responses import uncached_response
from services.query.lookup.authentication import principal
from services.query.lookup.problem import RETRY_AFTER_S, Problem, ProblemError
from services.query.lookup.projection import parse_paths, project
from services.query.lookup.state_reader import ANSWERING_ROLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from services.query.cluster.routing import Member, Standing
    from services.query.dependencies import Parts
    from services.query.http.forwarding import Forwarder
    from services.query.http.request_guard import RequestGuard
    from services.query.http.responses import HttpResponse
    from services.query.lookup.state_reader import StateReader, StateReaders

PATH = "/v1/states/{name:[^/:]+}"


class PageItems(NamedTuple):
    """Some keys with their answers, in order. Up to `after` none is missing; None: there are no more."""

    items: Sequence[tuple[str, bytes]]
    after: str | None


class PageRoutes:
    """Answers which keys there are."""

    def __init__(self, parts: Parts, holdings: StateReaders, elsewhere: Forwarder, gate: RequestGuard) -> None:
        self._parts = parts
        self._gate = gate
        self._holdings = holdings
        self._elsewhere = elsewhere

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routed."""
        return [web.get(PATH, self.get)]

    async def get(self, request: web.Request) -> web.Response:
        """The next keys that begin so and have these values, with their entries."""
        who = principal(request)
        held, wanted = self._holdings.held(request.match_info["name"], who), parse_query(PageParameters, request)
        who.check(held.state.name, wanted.prefix)
        if wanted.limit > self._parts.settings.page_most:
            most = self._parts.settings.page_most
            raise ProblemError(Problem("bad_request", f"limit: {most} keys at the most"))
        self._gate.charge(request, wanted.limit)
        where = _where(held, wanted)
        stands = self._stands(held, _partitions(held, wanted))
        here = [one for one, at in stands.items() if at.role in ANSWERING_ROLES]
        others = self._others(held, stands)
        if others and not self._elsewhere.may_ask(request):
            raise ProblemError(Problem("elsewhere", "Not all of these partitions are here"))
        own = self._local(held, wanted, where, here)  # at once: when the others have answered it may be another's
        found = await asyncio.gather(*(self._asked(one, held, wanted, theirs) for one, theirs in others.items()))
        items = merge_pages([own, *found], wanted.limit)
        return _reply(items, handed_on=HOP in request.headers).response()

    def _stands(self, held: StateReader, partitions: Iterable[int]) -> dict[int, Standing]:
        return {one: self._parts.roles.standing(held.state.name, one) for one in partitions}

    def _local(
        self, held: StateReader, wanted: PageParameters, where: Mapping[str, str], partitions: Sequence[int]
    ) -> PageItems:
        """What this instance has. Raises ProblemError (503) where, once read, not all partitions are its own still."""
        page = held.store.page(
            prefix=wanted.prefix, after=wanted.after, limit=wanted.limit, where=where, partitions=partitions
        )
        fields = None if wanted.fields is None else parse_paths(wanted.fields)
        stands = self._stands(held, partitions)
        if any(at.role not in ANSWERING_ROLES for at in stands.values()):
            raise ProblemError(
                Problem("catching_up", "Some partitions go to another just now", retry_after=RETRY_AFTER_S)
            )
        now, body = self._parts.now(), held.form.body
        items = []
        for key, entry in page.items:
            value = None if fields is None else project(entry.value, fields)
            items.append((key, body(key, entry, stands[entry.partition], now, value)))
        return PageItems(items, page.after)

    def _others(self, held: StateReader, stands: Mapping[int, Standing]) -> dict[tuple[Member, ...], list[int]]:
        """Who is to be asked for which partitions. Raises ProblemError (503): a page without some would be wrong."""
        found: dict[tuple[Member, ...], list[int]] = {}
        for one, at in sorted(stands.items()):
            if at.role in ANSWERING_ROLES:
                continue
            if at.role is Role.CATCHING_UP:
                raise ProblemError(Problem("catching_up", f"Partition {one} is read still", retry_after=RETRY_AFTER_S))
            found.setdefault(tuple(self._elsewhere.owners(held.state.name, one)), []).append(one)
        return found

    async def _asked(
        self, members: Sequence[Member], held: StateReader, wanted: PageParameters, partitions: Sequence[int]
    ) -> PageItems:
        said = wanted.model_dump(exclude_none=True) | {"partitions": ",".join(map(str, partitions))}
        target = f"/v1/states/{held.state.name}?{urlencode(said, doseq=True)}"
        after, *texts = await self._elsewhere.several(members, ForwardedRequest(target))
        return PageItems([(orjson.loads(one)["key"], one) for one in texts], orjson.loads(after))


def merge_pages(found: Sequence[PageItems], limit: int) -> PageItems:
    """The first of them all, as far as each of them was told."""
    bound = min((one.after for one in found if one.after is not None), default=None)
    items = sorted(item for one in found for item in one.items if bound is None or item[0] <= bound)
    return PageItems(items[:limit], items[limit - 1][0] if len(items) > limit else bound)


def _where(held: StateReader, wanted: PageParameters) -> dict[str, str]:
    """The values by path. Raises ProblemError (400) for a path without an index."""
    declared = held.state.query.indexes
    found: dict[str, str] = {}
    for one in wanted.where:
        path = next((path for path in declared if one.startswith(f"{path}:")), None)
        if path is None:
            told = ", ".join(declared) or "none: declare them as QueryOptions(indexes=…)"
            raise ProblemError(Problem("bad_request", f"where={one!r}: write path:value of an index. Indexes: {told}"))
        if path in found:
            raise ProblemError(Problem("bad_request", f"where: {path} is said twice, and has one value"))
        found[path] = one.removeprefix(f"{path}:")
    return found


def _partitions(held: StateReader, wanted: PageParameters) -> Sequence[int]:
    if wanted.partitions is None:
        return range(held.state.partitions)
    return [one for one in map(int, wanted.partitions.split(",")) if one < held.state.partitions]


def _reply(found: PageItems, *, handed_on: bool) -> HttpResponse:
    texts = [text for _, text in found.items]
    after = orjson.dumps(found.after)
    if handed_on:
        return sequence_response([after, *texts])
    return uncached_response(b'{"items":[%b],"after":%b}' % (b",".join(texts), after))
