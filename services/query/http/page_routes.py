"""GET of the keys of a state in their order, a page at a time, from all instances that own some of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import orjson

from contracts.api.reads import PAGE, PageParameters
from services.query.http.forwarding import sequence_response
from services.query.http.page_items import PageItems, merge_pages
from services.query.http.partition_reads import PartitionReads, parse_where
from services.query.http.peer_client import ForwardedRequest
from services.query.http.responses import uncached_response
from services.query.http.routes import route
from services.query.http.silent_pages import SilentPages
from services.query.http.validation import seconds_of
from services.query.lookup.projection import parse_paths, project
from services.query.store import Position, Scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from aiohttp import web

    from services.query.cluster import Member
    from services.query.dependencies import Dependencies
    from services.query.http.forwarding import Forwarder
    from services.query.http.requests import HttpRequest
    from services.query.http.responses import HttpResponse
    from services.query.lookup.state_reader import StateReader, StateReaders

NAME = "[^/:]+"
"""The name of a state in the path of a page. A batch has the same path with a suffix after a colon."""


class PageRoutes:
    """Answers requests for pages of keys."""

    def __init__(self, dependencies: Dependencies, readers: StateReaders, forwarder: Forwarder) -> None:
        self._dependencies = dependencies
        self._readers = readers
        self._forwarder = forwarder
        self._partitions = PartitionReads(dependencies, forwarder)
        self._silent = SilentPages(dependencies, forwarder, self._partitions)

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [route(PAGE, self.get, name=NAME)]

    async def get(self, request: HttpRequest) -> HttpResponse:
        """The next keys with this prefix and these values, or the next silent ones, with their entries.

        Raises ProblemError.
        """
        reader, query = self._readers.get(request.name, request.sender), request.parse(PageParameters)
        request.sender.check(request.name, query.prefix)
        request.charge_page(query.limit, self._dependencies.settings.max_page_keys, "keys")
        if query.silent_for is not None:
            return await self._silent.respond(request, reader, query, seconds_of(query.silent_for))
        return _respond(await self.read(request, reader, query), forwarded=request.is_forwarded)

    async def read(self, request: HttpRequest, reader: StateReader, query: PageParameters) -> PageItems[str]:
        """The page of all instances, in the order of the keys, for a request that may read it. Raises ProblemError."""
        where = parse_where(reader, query.where)
        local, others = self._partitions.divide(request, reader, query.partitions)
        own = self._read(reader, query, where, local)  # before the others answer: a partition may move meanwhile
        found = await asyncio.gather(*(self._forward(one, reader, query, theirs) for one, theirs in others.items()))
        return merge_pages([own, *found], query.limit)

    def _read(
        self, reader: StateReader, query: PageParameters, where: Mapping[str, str], partitions: Sequence[int]
    ) -> PageItems[str]:
        """The page of this instance. Raises ProblemError (503) if a partition moved while it was read."""
        after = None if query.after is None else Position(0, query.after)
        page = reader.store.scan(Scan(partitions, query.limit, query.prefix, after, where))
        paths = None if query.fields is None else parse_paths(query.fields)
        by_partition = self._partitions.statuses(reader, partitions)
        now, encode = self._dependencies.now(), reader.encoder.encode
        items = []
        for (_, key), entry in page.items:
            value = None if paths is None else project(entry.value, paths)
            items.append((key, encode(key, entry, by_partition[entry.partition], now, value)))
        return PageItems(items, None if page.after is None else page.after.key)

    async def _forward(
        self, owners: Sequence[Member], reader: StateReader, query: PageParameters, partitions: Sequence[int]
    ) -> PageItems[str]:
        members = query.model_dump(exclude_none=True) | {"partitions": ",".join(map(str, partitions))}
        target = f"{PAGE.target(name=reader.state.name)}?{urlencode(members, doseq=True)}"
        (after, *texts), _ = await self._forwarder.forward_sequence(owners, ForwardedRequest(target))
        return PageItems([(orjson.loads(text)["key"], text) for text in texts], orjson.loads(after))


def _respond(found: PageItems[str], *, forwarded: bool) -> HttpResponse:
    texts = [text for _, text in found.items]
    after = orjson.dumps(found.after)
    if forwarded:
        return sequence_response([after, *texts])
    return uncached_response(b'{"items":[%b],"after":%b}' % (b",".join(texts), after))
