"""Keys in their order, a page at a time, from all instances that hold some of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

import orjson
from aiohttp import web

from services.query.api.access import holder
from services.query.api.elsewhere import sequence
from services.query.api.fields import paths, projected
from services.query.api.held import HERE
from services.query.api.parameters import OfPage, asked
from services.query.api.problems import AGAIN_S, Problem, ProblemError
from services.query.api.reply import uncached
from services.query.cluster.routing import Role
from services.query.dependencies import HOP, Question

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from services.query.api.elsewhere import Elsewhere
    from services.query.api.gate import Gate
    from services.query.api.held import Held, Holdings
    from services.query.api.reply import Reply
    from services.query.cluster.routing import Member, Standing
    from services.query.dependencies import Parts

PATH = "/v1/states/{name:[^/:]+}"


class Items(NamedTuple):
    """Some keys with their answers, in order. Up to `after` none is missing; None: there are no more."""

    items: Sequence[tuple[str, bytes]]
    after: str | None


class Pages:
    """Answers which keys there are."""

    def __init__(self, parts: Parts, holdings: Holdings, elsewhere: Elsewhere, gate: Gate) -> None:
        self._parts = parts
        self._gate = gate
        self._holdings = holdings
        self._elsewhere = elsewhere

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routed."""
        return [web.get(PATH, self.get)]

    async def get(self, request: web.Request) -> web.Response:
        """The next keys that begin so and have these values, with their entries."""
        who = holder(request)
        held, wanted = self._holdings.held(request.match_info["name"], who), asked(OfPage, request)
        who.check(held.state.name, wanted.prefix)
        if wanted.limit > self._parts.settings.page_most:
            most = self._parts.settings.page_most
            raise ProblemError(Problem("bad_request", f"limit: {most} keys at the most"))
        self._gate.charge(request, wanted.limit)
        where = _where(held, wanted)
        stands = self._stands(held, _partitions(held, wanted))
        here = [one for one, at in stands.items() if at.role in HERE]
        others = self._others(held, stands)
        if others and not self._elsewhere.may_ask(request):
            raise ProblemError(Problem("elsewhere", "Not all of these partitions are here"))
        own = self._local(held, wanted, where, here)  # at once: when the others have answered it may be another's
        found = await asyncio.gather(*(self._asked(one, held, wanted, theirs) for one, theirs in others.items()))
        items = merged([own, *found], wanted.limit)
        return _reply(items, handed_on=HOP in request.headers).response()

    def _stands(self, held: Held, partitions: Iterable[int]) -> dict[int, Standing]:
        return {one: self._parts.roles.standing(held.state.name, one) for one in partitions}

    def _local(self, held: Held, wanted: OfPage, where: Mapping[str, str], partitions: Sequence[int]) -> Items:
        """What this instance has. Raises ProblemError (503) where, once read, not all partitions are its own still."""
        page = held.store.page(
            prefix=wanted.prefix, after=wanted.after, limit=wanted.limit, where=where, partitions=partitions
        )
        fields = None if wanted.fields is None else paths(wanted.fields)
        stands = self._stands(held, partitions)
        if any(at.role not in HERE for at in stands.values()):
            raise ProblemError(Problem("catching_up", "Some partitions go to another just now", retry_after=AGAIN_S))
        now, body = self._parts.now(), held.form.body
        items = []
        for key, entry in page.items:
            value = None if fields is None else projected(entry.value, fields)
            items.append((key, body(key, entry, stands[entry.partition], now, value)))
        return Items(items, page.after)

    def _others(self, held: Held, stands: Mapping[int, Standing]) -> dict[tuple[Member, ...], list[int]]:
        """Who is to be asked for which partitions. Raises ProblemError (503): a page without some would be wrong."""
        found: dict[tuple[Member, ...], list[int]] = {}
        for one, at in sorted(stands.items()):
            if at.role in HERE:
                continue
            if at.role is Role.CATCHING_UP:
                raise ProblemError(Problem("catching_up", f"Partition {one} is read still", retry_after=AGAIN_S))
            found.setdefault(tuple(self._elsewhere.owners(held.state.name, one)), []).append(one)
        return found

    async def _asked(self, members: Sequence[Member], held: Held, wanted: OfPage, partitions: Sequence[int]) -> Items:
        said = wanted.model_dump(exclude_none=True) | {"partitions": ",".join(map(str, partitions))}
        target = f"/v1/states/{held.state.name}?{urlencode(said, doseq=True)}"
        after, *texts = await self._elsewhere.several(members, Question(target))
        return Items([(orjson.loads(one)["key"], one) for one in texts], orjson.loads(after))


def merged(found: Sequence[Items], limit: int) -> Items:
    """The first of them all, as far as each of them was told."""
    bound = min((one.after for one in found if one.after is not None), default=None)
    items = sorted(item for one in found for item in one.items if bound is None or item[0] <= bound)
    return Items(items[:limit], items[limit - 1][0] if len(items) > limit else bound)


def _where(held: Held, wanted: OfPage) -> dict[str, str]:
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


def _partitions(held: Held, wanted: OfPage) -> Sequence[int]:
    if wanted.partitions is None:
        return range(held.state.partitions)
    return [one for one in map(int, wanted.partitions.split(",")) if one < held.state.partitions]


def _reply(found: Items, *, handed_on: bool) -> Reply:
    texts = [text for _, text in found.items]
    after = orjson.dumps(found.after)
    if handed_on:
        return sequence([after, *texts])
    return uncached(b'{"items":[%b],"after":%b}' % (b",".join(texts), after))
