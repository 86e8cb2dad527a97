"""GET of pages of keys: in the order of keys, the silent ones, or those of one window; from all instances."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from pydantic import TypeAdapter

from contracts.api.reads import PAGE, PageParameters
from contracts.api.windows import WINDOW_PAGE, WindowPageParameters
from services.query.http.cursor import Start, decode_cursor, encode_cursor
from services.query.http.pages import PageReader, page_sequence
from services.query.http.responses import uncached_response
from services.query.http.routes import route
from services.query.http.validation import milliseconds_at, seconds_of
from services.query.lookup.decision import iso
from services.query.lookup.problems import Problem, ProblemError
from services.query.store import Position, Scan, Seconds
from services.query.store.buckets import milliseconds
from services.query.store.index import FIRST_SECOND, silent_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from aiohttp import web

    from services.query.dependencies import Dependencies
    from services.query.http.forwarding import Forwarder
    from services.query.http.pages import PageItems
    from services.query.http.requests import HttpRequest
    from services.query.http.responses import HttpResponse
    from services.query.lookup.state_reader import StateReader, StateReaders

Query = TypeVar("Query", PageParameters, WindowPageParameters)
NAME = "[^/:]+"
"""The name of a state in the path of a page. A batch has the same path with a suffix after a colon."""
TIME = "now|[0-9][^/]*"
"""A time, or the present one. The other paths with this beginning are those of the key `windows`."""
SILENT_CURSOR: TypeAdapter[tuple[Start, str]] = TypeAdapter(tuple[Start, str])
"""The position of the last key of the page: the second of its event time, and the key."""
WINDOW_CURSOR: TypeAdapter[tuple[str | None, Start, float, str]] = TypeAdapter(tuple[str | None, Start, float, str])
"""The order, the start of the window, and the position of the last key of the page."""


class PageRoutes:
    """Answers requests for pages of keys."""

    def __init__(self, dependencies: Dependencies, readers: StateReaders, forwarder: Forwarder) -> None:
        self._dependencies = dependencies
        self._readers = readers
        self._pages = PageReader(dependencies, forwarder)

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [route(PAGE, self.get, name=NAME), route(WINDOW_PAGE, self.get_window, time=TIME)]

    async def get(self, request: HttpRequest) -> HttpResponse:
        """The next keys with this prefix and these values, or the next silent ones, with their entries.

        Raises ProblemError.
        """
        reader, query = self._admit(request, PageParameters, lambda query: query.silent_for)
        is_silent = query.silent_for is not None
        page = await self.read(request, reader, query)
        if request.is_forwarded:
            return page_sequence(page, has_numbers=is_silent)
        after = None if page.after is None else page.after.key
        if page.after is not None and is_silent:
            after = encode_cursor([int(page.after.number), page.after.key])
        return uncached_response(b'{"items":[%b],"after":%b}' % (_items(page), orjson.dumps(after)))

    async def get_window(self, request: HttpRequest) -> HttpResponse:
        """The next keys of the newest window that contains the time. Raises ProblemError."""
        reader, query = self._admit(request, WindowPageParameters, lambda query: query.order_by)
        windows, (time, scan) = reader.windows, self._window_scan(request, reader, query)
        path = WINDOW_PAGE.target(name=reader.state.name, time=iso(time))
        page = await self._pages.read(request, reader, scan, query, path)
        if request.is_forwarded:
            return page_sequence(page, has_numbers=True)
        start, cursor = page.window_start, None
        if page.after is not None and start is not None:
            cursor = encode_cursor([query.order_by, start, *page.after])
        facts: dict[str, Any] = {"window_start": None, "window_end": None, "is_open": None}
        if start is not None and page.items and reader.state.window is not None:
            end = start + milliseconds(reader.state.window)
            facts = {"window_start": iso(start), "window_end": iso(end), "is_open": windows.is_open(start)}
        head = orjson.dumps(facts)[:-1]
        body = head + b',"items":[%b],"cursor":%b}' % (_items(page), orjson.dumps(cursor))
        return uncached_response(body)

    async def read(self, request: HttpRequest, reader: StateReader, query: PageParameters) -> PageItems:
        """The page of all instances, for a request that may read it. Raises ProblemError."""
        scan, path = self._scan(reader, query), PAGE.target(name=reader.state.name)
        return await self._pages.read(request, reader, scan, query, path)

    def _admit(
        self, request: HttpRequest, parameters: type[Query], order: Callable[[Query], object]
    ) -> tuple[StateReader, Query]:
        """The reader of the state and the parameters of a page that the sender may read. Raises ProblemError.

        `order` returns the parameter that orders the keys by a number.
        """
        reader, query = self._readers.get(request.name, request.sender), request.parse(parameters)
        request.sender.check(request.name, query.prefix)
        if order(query) is not None:
            request.sender.check_order(request.name)
        return reader, request.charge_page(query, self._dependencies.settings.max_page_keys, "keys")

    def _scan(self, reader: StateReader, query: PageParameters) -> Scan:
        """The scan of keys, or of silent ones. Raises ProblemError (400)."""
        if query.silent_for is None:
            after = None if query.after is None else Position(0, query.after)
            return Scan((), query.limit, query.prefix, after, _parse_where(reader, query.where))
        if not reader.state.query.silence:
            detail = f"silent_for: {reader.state.name!r} does not declare QueryOptions(silence=True)"
            raise ProblemError(Problem("bad_request", detail))
        after = None if query.after is None else Position(*decode_cursor(SILENT_CURSOR, query.after))
        silent = Seconds(FIRST_SECOND, silent_until(self._dependencies.now(), seconds_of(query.silent_for)))
        return Scan((), query.limit, query.prefix, after, _parse_where(reader, query.where), silent=silent)

    def _window_scan(self, request: HttpRequest, reader: StateReader, query: WindowPageParameters) -> tuple[int, Scan]:
        """A time, and the scan of the newest window that contains it. Raises ProblemError (400)."""
        time, after = self._parse_time(request.time), None
        if query.cursor is not None:
            order, time, number, key = decode_cursor(WINDOW_CURSOR, query.cursor)
            if order != query.order_by:
                raise ProblemError(Problem("bad_request", f"cursor: it is of a page with order_by={order}"))
            after = Position(number, key)
        descending = (query.order_by or "").startswith("-")
        order_by = None if query.order_by is None else query.order_by.removeprefix("-")
        if order_by is not None and order_by not in reader.state.query.indexes:
            detail = f"order_by={query.order_by!r}: write an index, or - and an index. Indexes: {_indexes_of(reader)}"
            raise ProblemError(Problem("bad_request", detail))
        where = _parse_where(reader, query.where)
        return time, Scan((), query.limit, query.prefix, after, where, time, order_by, descending)

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


def _items(page: PageItems) -> bytes:
    return b",".join(text for _, text in page.items)


def _parse_where(reader: StateReader, where: Sequence[str]) -> dict[str, str]:
    """The values by path. Raises ProblemError (400) for a path without an index."""
    found: dict[str, str] = {}
    for one in where:
        path = next((path for path in reader.state.query.indexes if one.startswith(f"{path}:")), None)
        if path is None:
            detail = f"where={one!r}: write path:value of an index. Indexes: {_indexes_of(reader)}"
            raise ProblemError(Problem("bad_request", detail))
        if path in found:
            raise ProblemError(Problem("bad_request", f"where: {path} appears twice, and has one value"))
        found[path] = one.removeprefix(f"{path}:")
    return found


def _indexes_of(reader: StateReader) -> str:
    """The declared indexes, for the detail of a problem."""
    return ", ".join(reader.state.query.indexes) or "none: declare them as QueryOptions(indexes=…)"
