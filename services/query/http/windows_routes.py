"""GET of the windows of one key, in their order, a page at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import orjson
from pydantic import TypeAdapter

from contracts.api.windows import WINDOWS, WindowsParameters
from contracts.metrics import query as metrics
from services.query.http.cursor import Start, decode_cursor, encode_cursor
from services.query.http.responses import uncached_response
from services.query.http.routes import route
from services.query.http.validation import milliseconds_at
from services.query.lookup.problems import Problem, ProblemError
from services.query.lookup.projection import parse_paths, project
from services.query.lookup.state_reader import WindowsRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiohttp import web

    from services.query.dependencies import Dependencies
    from services.query.http.forwarding import Forwarder
    from services.query.http.requests import HttpRequest
    from services.query.http.responses import HttpResponse
    from services.query.lookup.state_reader import StateReaders

CURSOR: TypeAdapter[tuple[Literal["asc", "desc"], Start]] = TypeAdapter(tuple[Literal["asc", "desc"], Start])
"""The order, and the start of the last window of the page: a page continues there, whatever windows are added."""


class WindowsRoutes:
    """Answers requests for the windows of a key."""

    def __init__(self, dependencies: Dependencies, readers: StateReaders, forwarder: Forwarder) -> None:
        self._dependencies = dependencies
        self._readers = readers
        self._forwarder = forwarder

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [route(WINDOWS, self.get)]

    async def get(self, request: HttpRequest) -> HttpResponse:
        """The next windows of the key. Raises ProblemError."""
        key = request.key
        reader, query = self._readers.get(request.name, request.sender, key), request.parse(WindowsParameters)
        query = request.charge_page(query, self._dependencies.settings.max_page_keys, "windows")
        self._dependencies.counts.add(metrics.KEYS, reader.state.name)
        found = reader.read_windows(key, _windows_request(query))
        if found.belongs_to_peer and self._forwarder.can_forward(request):
            return await self._forwarder.forward_read(request, found.partition)
        if isinstance(found.outcome, Problem):
            raise ProblemError(reader.encoder.describe(key, found.outcome, found.partition_status))
        windows, has_more = found.outcome[: query.limit], len(found.outcome) > query.limit
        paths = None if query.fields is None else parse_paths(query.fields)
        now, encode, status = self._dependencies.now(), reader.encoder.encode, found.partition_status
        answers = [
            encode(key, window, status, now, None if paths is None else project(window.value, paths))
            for window in windows
        ]
        cursor = encode_cursor([query.order, windows[-1].window_start]) if has_more else None
        body = b'{"windows":[%b],"cursor":%b}' % (b",".join(answers), orjson.dumps(cursor))
        return uncached_response(body)


def _windows_request(query: WindowsParameters) -> WindowsRequest:
    """The request of one window more than the page has, which shows whether there is a next page."""
    start, end, newest_first = milliseconds_at(query.start), milliseconds_at(query.end), query.order == "desc"
    if query.cursor is not None:
        order, last = decode_cursor(CURSOR, query.cursor)
        if order != query.order:
            raise ProblemError(Problem("bad_request", f"cursor: it is of a page with order={order}"))
        start, end = (start, last) if newest_first else (last + 1, end)
    return WindowsRequest(start, end, newest_first, query.limit + 1)
