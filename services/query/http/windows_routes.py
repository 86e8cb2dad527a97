"""GET of the windows of one key, in their order, a page at a time, and of the coverage of their data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

import orjson
from pydantic import TypeAdapter

from contracts.api.windows import COVERAGE, WINDOWS, CoverageParameters, WindowsParameters
from contracts.metrics import query as metrics
from services.query.http.cursor import Start, decode_cursor, encode_cursor
from services.query.http.responses import HttpResponse, json_response, uncached_response
from services.query.http.routes import route
from services.query.http.validation import milliseconds_at
from services.query.lookup.coverage_reader import CoverageReader, CoverageRequest
from services.query.lookup.decision import NO_CONDITIONS, iso
from services.query.lookup.problems import Problem, ProblemError
from services.query.lookup.projection import parse_paths, project
from services.query.lookup.state_reader import WindowsRequest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from aiohttp import web

    from contracts.model.named_state import CoverageField
    from services.query.dependencies import Dependencies
    from services.query.http.forwarding import Forwarder
    from services.query.http.requests import HttpRequest
    from services.query.lookup.coverage_reader import CoveredRange
    from services.query.lookup.state_reader import StateReader, StateReaders

Query = TypeVar("Query", WindowsParameters, CoverageParameters)
CURSOR: TypeAdapter[tuple[Literal["asc", "desc"], Start]] = TypeAdapter(tuple[Literal["asc", "desc"], Start])
"""The order, and the start of the last window of the page: a page continues there, whatever windows are added."""


class WindowsRoutes:
    """Answers requests for the windows of a key, and for the intervals that have data."""

    def __init__(self, dependencies: Dependencies, readers: StateReaders, forwarder: Forwarder) -> None:
        self._dependencies = dependencies
        self._readers = readers
        self._forwarder = forwarder

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [route(WINDOWS, self.get), route(COVERAGE, self.get_coverage)]

    async def get(self, request: HttpRequest) -> HttpResponse:
        """The next windows of the key. Raises ProblemError."""
        reader, query = self._admit(request, WindowsParameters)
        found = reader.read_windows(request.key, _windows_request(query))
        outcome = await self._forwarder.outcome(request, reader, found)
        if isinstance(outcome, HttpResponse):
            return outcome
        windows, has_more = outcome[: query.limit], len(outcome) > query.limit
        paths = None if query.fields is None else parse_paths(query.fields)
        now, encode, status = self._dependencies.now(), reader.encoder.encode, found.partition_status
        answers = [
            encode(request.key, window, status, now, None if paths is None else project(window.value, paths))
            for window in windows
        ]
        cursor = encode_cursor([query.order, windows[-1].window_start]) if has_more else None
        body = b'{"windows":[%b],"cursor":%b}' % (b",".join(answers), orjson.dumps(cursor))
        return uncached_response(body)

    async def get_coverage(self, request: HttpRequest) -> HttpResponse:
        """The intervals of the range, or of its beginning if it has more windows than `limit`. Raises ProblemError."""
        reader, query = self._admit(request, CoverageParameters)
        windows = CoverageReader(reader)
        field = windows.field(query.field)
        wanted = CoverageRequest(field, milliseconds_at(query.start), milliseconds_at(query.end), query.limit)
        found = reader.read(request.key, NO_CONDITIONS)
        outcome = await self._forwarder.outcome(request, reader, found)
        if isinstance(outcome, HttpResponse):
            return outcome
        covered = windows.read(request.key, outcome.entry, wanted, self._dependencies.now())
        facts = {
            "state": reader.state.name,
            "key": request.key,
            **_describe(field, covered),
            "lag": {"records": found.partition_status.lag},
            "role": found.partition_status.role,
            "instance": self._dependencies.settings.instance,
        }
        return json_response(facts)

    def _admit(self, request: HttpRequest, parameters: type[Query]) -> tuple[StateReader, Query]:
        """The reader of the state, if the sender may read the key, and the charged query. Raises ProblemError."""
        reader, query = self._readers.get(request.name, request.sender, request.key), request.parse(parameters)
        query = request.charge_page(query, self._dependencies.settings.max_page_keys, "windows")
        self._dependencies.counts.add(metrics.KEYS, request.name)
        return reader, query


def _windows_request(query: WindowsParameters) -> WindowsRequest:
    """The request of one window more than the page has, which shows whether there is a next page."""
    start, end, newest_first = milliseconds_at(query.start), milliseconds_at(query.end), query.order == "desc"
    if query.cursor is not None:
        order, last = decode_cursor(CURSOR, query.cursor)
        if order != query.order:
            raise ProblemError(Problem("bad_request", f"cursor: it is of a page with order={order}"))
        start, end = (start, last) if newest_first else (last + 1, end)
    return WindowsRequest(start, end, newest_first, query.limit + 1)


def _describe(field: CoverageField, covered: CoveredRange) -> dict[str, Any]:
    return {
        "field": field.path,
        "step_s": field.step.total_seconds(),
        "from": iso(covered.start),
        "to": iso(covered.end),
        "next": None if covered.next is None else iso(covered.next),
        "final_until": iso(covered.final_until),
        "intervals": [{"kind": kind, "from": iso(start), "to": iso(end)} for kind, start, end in covered.intervals],
    }
