"""GET of the keys of one window, by key or by a number, a page at a time, from all instances that own some of them."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import orjson
from pydantic import TypeAdapter

from contracts.api.windows import WINDOW_PAGE, WindowPageParameters
from services.query.http.cursor import Start, decode_cursor, encode_cursor
from services.query.http.forwarding import sequence_response
from services.query.http.partition_reads import PartitionReads, indexes_of, parse_where
from services.query.http.peer_client import ForwardedRequest
from services.query.http.responses import uncached_response
from services.query.http.routes import route
from services.query.http.validation import milliseconds_at
from services.query.lookup.decision import iso
from services.query.lookup.problems import Problem, ProblemError
from services.query.store import Position, Scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from aiohttp import web

    from services.query.cluster import Member
    from services.query.dependencies import Dependencies
    from services.query.http.forwarding import Forwarder
    from services.query.http.requests import HttpRequest
    from services.query.http.responses import HttpResponse
    from services.query.lookup.state_reader import StateReader, StateReaders

TIME = "now|[0-9][^/]*"
"""A time, or the present one. The other paths with this beginning are those of the key `windows`."""
CURSOR: TypeAdapter[tuple[str | None, Start, float, str]] = TypeAdapter(tuple[str | None, Start, float, str])
"""The order, the start of the window, and the position of the last key of the page."""


class WindowItems(NamedTuple):
    """Keys of a window with their answers, in order and complete up to `after`; None if there are no further keys."""

    window_start: int | None
    items: Sequence[tuple[Position, bytes]]
    after: Position | None


class WindowPageRoutes:
    """Answers requests for the keys of a window."""

    def __init__(self, dependencies: Dependencies, readers: StateReaders, forwarder: Forwarder) -> None:
        self._dependencies = dependencies
        self._readers = readers
        self._forwarder = forwarder
        self._partitions = PartitionReads(dependencies, forwarder)

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [route(WINDOW_PAGE, self.get, time=TIME)]

    async def get(self, request: HttpRequest) -> HttpResponse:
        """The next keys of the newest window that contains the time. Raises ProblemError."""
        reader, query = self._readers.get(request.name, request.sender), request.parse(WindowPageParameters)
        request.sender.check(request.name, query.prefix)
        request.charge_page(query.limit, self._dependencies.settings.max_page_keys, "keys")
        local, others = self._partitions.divide(request, reader, query.partitions)
        wanted = self._page_request(request, reader, query, local)
        own = self._read(reader, wanted, query.fields)  # before the others answer: a partition may move meanwhile
        forwarded = (self._forward(one, reader, query, wanted.time or 0, theirs) for one, theirs in others.items())
        found = merge_windows([own, *await asyncio.gather(*forwarded)], query.limit, descending=wanted.descending)
        return _respond_to_peer(found) if request.is_forwarded else _respond(reader, query, found)

    def _page_request(
        self, request: HttpRequest, reader: StateReader, query: WindowPageParameters, partitions: Sequence[int]
    ) -> Scan:
        """The request to a store. Raises ProblemError (400)."""
        time, after = self._parse_time(request.time), None
        if query.cursor is not None:
            order, time, number, key = decode_cursor(CURSOR, query.cursor)
            if order != query.order_by:
                raise ProblemError(Problem("bad_request", f"cursor: it is of a page with order_by={order}"))
            after = Position(number, key)
        descending = (query.order_by or "").startswith("-")
        order_by = None if query.order_by is None else query.order_by.removeprefix("-")
        if order_by is not None and order_by not in reader.state.query.indexes:
            detail = f"order_by={query.order_by!r}: write an index, or - and an index. Indexes: {indexes_of(reader)}"
            raise ProblemError(Problem("bad_request", detail))
        where = parse_where(reader, query.where)
        return Scan(partitions, query.limit, query.prefix, after, where, time, order_by, descending)

    def _parse_time(self, text: str) -> int:
        if text == "now":
            return self._dependencies.now()
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            time = None
        if time is None or time.tzinfo is None or not re.match(r"\d{4}-\d\d-\d\dT", text):
            detail = f"{text[:100]}: write now, or a time such as 2026-05-01T08:00:00Z, with its offset"
            raise ProblemError(Problem("bad_request", detail))
        return milliseconds_at(time)

    def _read(self, reader: StateReader, wanted: Scan, fields: str | None) -> WindowItems:
        """The page of this instance. Raises ProblemError (503) if a partition moved while it was read."""
        page = reader.windows.scan(wanted)
        items = self._partitions.answers(reader, page.items, wanted.partitions, fields)
        return WindowItems(page.window_start, items, page.after)

    async def _forward(
        self,
        owners: Sequence[Member],
        reader: StateReader,
        query: WindowPageParameters,
        time: int,
        partitions: Sequence[int],
    ) -> WindowItems:
        members = query.model_dump(exclude_none=True) | {"partitions": ",".join(map(str, partitions))}
        path = WINDOW_PAGE.target(name=reader.state.name, time=iso(time))
        target = f"{path}?{urlencode(members, doseq=True)}"
        (head, *texts), _ = await self._forwarder.forward_sequence(owners, ForwardedRequest(target))
        facts = orjson.loads(head)
        positions = (Position(*one) for one in facts["positions"])
        after = None if facts["after"] is None else Position(*facts["after"])
        return WindowItems(facts["window_start"], list(zip(positions, texts, strict=True)), after)


def merge_windows(found: Sequence[WindowItems], limit: int, *, descending: bool) -> WindowItems:
    """The first keys of all pages, up to the position to which every page is complete."""
    start = max((one.window_start for one in found if one.window_start is not None), default=None)
    found = [one for one in found if one.window_start == start]
    items = [item for one in found for item in one.items]
    items.sort(key=lambda item: item[0], reverse=descending)
    bounds = [one.after for one in found if one.after is not None]
    bound = (max(bounds) if descending else min(bounds)) if bounds else None
    if bound is not None:
        items = [item for item in items if (item[0] >= bound if descending else item[0] <= bound)]
    return WindowItems(start, items[:limit], items[limit - 1][0] if len(items) > limit else bound)


def _respond(reader: StateReader, query: WindowPageParameters, found: WindowItems) -> HttpResponse:
    start, size = found.window_start, reader.state.window
    facts: dict[str, Any] = {"window_start": None, "window_end": None, "is_open": None}
    if start is not None and found.items and size is not None:
        end = start + round(size.total_seconds() * 1000)
        facts = {"window_start": iso(start), "window_end": iso(end), "is_open": reader.windows.is_open(start)}
    cursor = None if found.after is None or start is None else encode_cursor([query.order_by, start, *found.after])
    head, items = orjson.dumps(facts)[:-1], b",".join(text for _, text in found.items)
    return uncached_response(head + b',"items":[%b],"cursor":%b}' % (items, orjson.dumps(cursor)))


def _respond_to_peer(found: WindowItems) -> HttpResponse:
    positions = [tuple(position) for position, _ in found.items]
    after = None if found.after is None else tuple(found.after)
    facts = {"window_start": found.window_start, "after": after, "positions": positions}
    return sequence_response([orjson.dumps(facts), *(text for _, text in found.items)])
