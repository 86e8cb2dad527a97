"""Pages of silent keys: those whose event time is older than a span, from all instances that own some of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import orjson
from pydantic import TypeAdapter

from contracts.api.reads import PAGE
from services.query.http.cursor import Start, decode_cursor, encode_cursor
from services.query.http.forwarding import sequence_response
from services.query.http.page_items import PageItems, merge_pages
from services.query.http.partition_reads import parse_where
from services.query.http.peer_client import ForwardedRequest
from services.query.http.responses import uncached_response
from services.query.lookup.problems import Problem, ProblemError
from services.query.store import Position, Scan, Seconds
from services.query.store.index import FIRST_SECOND, silent_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contracts.api.reads import PageParameters
    from services.query.cluster import Member
    from services.query.dependencies import Dependencies
    from services.query.http.forwarding import Forwarder
    from services.query.http.partition_reads import PartitionReads
    from services.query.http.requests import HttpRequest
    from services.query.http.responses import HttpResponse
    from services.query.lookup.state_reader import StateReader

CURSOR: TypeAdapter[tuple[Start, str]] = TypeAdapter(tuple[Start, str])
"""The position of the last key of the page: the second of its event time, and the key."""


class SilentPages:
    """Answers requests for pages of keys with `silent_for`."""

    def __init__(self, dependencies: Dependencies, forwarder: Forwarder, partitions: PartitionReads) -> None:
        self._dependencies = dependencies
        self._forwarder = forwarder
        self._partitions = partitions

    async def respond(
        self, request: HttpRequest, reader: StateReader, query: PageParameters, silent_for: int
    ) -> HttpResponse:
        """The next keys that have been silent for so many seconds, those silent longest first. Raises ProblemError."""
        if not reader.state.query.silence:
            detail = f"silent_for: {reader.state.name!r} does not declare QueryOptions(silence=True)"
            raise ProblemError(Problem("bad_request", detail))
        after = None if query.after is None else Position(*decode_cursor(CURSOR, query.after))
        until, where = silent_until(self._dependencies.now(), silent_for), parse_where(reader, query.where)
        local, others = self._partitions.divide(request, reader, query.partitions)
        wanted = Scan(local, query.limit, query.prefix, after, where, silent=Seconds(FIRST_SECOND, until))
        own = self._read(reader, wanted, query.fields)  # before the others answer: a partition may move meanwhile
        forwarded = (self._forward(one, reader, query, theirs) for one, theirs in others.items())
        found = merge_pages([own, *await asyncio.gather(*forwarded)], query.limit)
        return _respond_to_peer(found) if request.is_forwarded else _respond(found)

    def _read(self, reader: StateReader, wanted: Scan, fields: str | None) -> PageItems[Position]:
        """The page of this instance. Raises ProblemError (503) if a partition moved while it was read."""
        page = reader.store.scan(wanted)
        return PageItems(self._partitions.answers(reader, page.items, wanted.partitions, fields), page.after)

    async def _forward(
        self, owners: Sequence[Member], reader: StateReader, query: PageParameters, partitions: Sequence[int]
    ) -> PageItems[Position]:
        members = query.model_dump(exclude_none=True) | {"partitions": ",".join(map(str, partitions))}
        target = f"{PAGE.target(name=reader.state.name)}?{urlencode(members, doseq=True)}"
        (head, *texts), _ = await self._forwarder.forward_sequence(owners, ForwardedRequest(target))
        facts = orjson.loads(head)
        positions = (Position(*one) for one in facts["positions"])
        after = None if facts["after"] is None else Position(*facts["after"])
        return PageItems(list(zip(positions, texts, strict=True)), after)


def _respond(found: PageItems[Position]) -> HttpResponse:
    after = None if found.after is None else encode_cursor([int(found.after.number), found.after.key])
    items = b",".join(text for _, text in found.items)
    return uncached_response(b'{"items":[%b],"after":%b}' % (items, orjson.dumps(after)))


def _respond_to_peer(found: PageItems[Position]) -> HttpResponse:
    positions = [tuple(position) for position, _ in found.items]
    facts = {"after": None if found.after is None else tuple(found.after), "positions": positions}
    return sequence_response([orjson.dumps(facts), *(text for _, text in found.items)])
