"""The console's routes: the page and its JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from aiohttp import web

from contracts.api.loop import LOOP, LOOP_DEAD_LETTERS, LOOP_GRAPH, ApplicationQuery, DeadLettersQuery, LoopQuery
from services.query.console.graph import graph, without_counts
from services.query.console.page import INDEX, charts, file_response, page
from services.query.http.request_context import principal
from services.query.http.responses import problem_response
from services.query.http.routes import route
from services.query.http.validation import parse_query
from services.query.lookup.problems import RETRY_AFTER_S, Problem

if TYPE_CHECKING:
    from pydantic import BaseModel

    from services.query.console.loops import Loops

JARS = Path(".stateloop/jars")


class Console:
    """Answers from the loops. Totals over all keys require a token that reads all keys."""

    def __init__(self, loops: Loops, jars: Path = JARS) -> None:
        self._loops = loops
        self._files = page() | charts(jars)

    def routes(self) -> list[web.RouteDef]:
        """Return the routes; the files of the page require no token."""
        return [
            web.get("/", self.file),
            web.get("/console/{file:.+}", self.file),
            route(LOOP, self.loop),
            route(LOOP_GRAPH, self.graph),
            route(LOOP_DEAD_LETTERS, self.dead_letters),
        ]

    async def file(self, request: web.Request) -> web.Response:
        """Return the file that the path names, the page itself for `/`."""
        return file_response(request, self._files.get(request.match_info.get("file", INDEX)))

    async def loop(self, request: web.Request) -> web.Response:
        """Return the metrics and the health, with the history after `since` (milliseconds since 1970)."""
        sender = principal(request)
        sender.check_all()
        query = parse_query(LoopQuery, request)
        found = self._loops.get(query.application, sender).history.answer(query.since)
        return _not_yet() if found is None else _json(found.model_copy(update={"applications": self._loops.health()}))

    async def graph(self, request: web.Request) -> web.Response:
        """Return the enrichments; with their counts for a token that reads all keys."""
        sender = principal(request)
        loop = self._loops.get(parse_query(ApplicationQuery, request).application, sender)
        if (span := loop.history.span) is None:
            return _not_yet()
        found = graph(loop.application, *span)
        return _json(found if sender.is_unbounded else without_counts(found))

    async def dead_letters(self, request: web.Request) -> web.Response:
        """Return the counts by reason, and the latest dead letters."""
        sender = principal(request)
        sender.check_all()
        query = parse_query(DeadLettersQuery, request)
        return _json(self._loops.get(query.application, sender).dead_letters.answer(query.limit))


def _json(answer: BaseModel) -> web.Response:
    body = orjson.dumps(answer.model_dump(mode="json"))
    return web.Response(body=body, content_type="application/json", headers={"Cache-Control": "no-store"})


def _not_yet() -> web.Response:
    return problem_response(
        Problem("catching_up", "The loop has not been sampled yet", retry_after=RETRY_AFTER_S)
    ).response()
