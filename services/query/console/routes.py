"""The console's routes: the page and its JSON."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from contracts.api.loop import LOOP, LOOP_DEAD_LETTERS, LOOP_GRAPH, ApplicationQuery, DeadLettersQuery, LoopQuery
from services.query.console.dead_letters import TAIL, DeadLetterReader
from services.query.console.figures import topics_of
from services.query.console.graph import graph, without_counts
from services.query.console.loops import Loops
from services.query.console.page import INDEX, charts, file_response, page
from services.query.console.sampler import Sampler
from services.query.http.responses import json_response, problem_response
from services.query.http.routes import route
from services.query.lookup.problems import RETRY_AFTER_S, Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pydantic import BaseModel

    from contracts import Suite
    from services.query.dependencies import Dependencies
    from services.query.http.requests import HttpRequest
    from services.query.http.responses import HttpResponse
    from services.runtime.kafka.interfaces import Admin, Kafka

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
        name = request.match_info.get("file", INDEX)
        if name not in self._files:
            raise web.HTTPNotFound
        return file_response(request, name, self._files[name])

    async def loop(self, request: HttpRequest) -> HttpResponse:
        """Return the metrics and the health, with the history after `since` (milliseconds since 1970)."""
        request.sender.check_all()
        query = request.parse(LoopQuery)
        found = self._loops.get(query.application, request.sender).history.answer(query.since)
        return _not_yet() if found is None else _json(found.model_copy(update={"applications": self._loops.health()}))

    async def graph(self, request: HttpRequest) -> HttpResponse:
        """Return the enrichments; with their counts for a token that reads all keys."""
        sender = request.sender
        loop = self._loops.get(request.parse(ApplicationQuery).application, sender)
        if (span := loop.history.span) is None:
            return _not_yet()
        found = graph(loop.application, span)
        return _json(found if sender.is_unbounded else without_counts(found))

    async def dead_letters(self, request: HttpRequest) -> HttpResponse:
        """Return the counts by reason, and the latest dead letters."""
        request.sender.check_all()
        query = request.parse(DeadLettersQuery)
        return _json(self._loops.get(query.application, request.sender).dead_letters.answer(query.limit))


def _json(answer: BaseModel) -> HttpResponse:
    return json_response(answer.model_dump(mode="json"))


def _not_yet() -> HttpResponse:
    return problem_response(Problem("catching_up", "The loop has not been sampled yet", retry_after=RETRY_AFTER_S))


@asynccontextmanager
async def console(suite: Suite, dependencies: Dependencies, kafka: Kafka, admin: Admin) -> AsyncIterator[Console]:
    """Yield the console's routes; the loops of the suite's applications are sampled while it is open."""
    loops = Loops(suite, dependencies.settings.scrape_every.total_seconds())
    topics = {name for application in suite.applications for name in topics_of(application).values()}
    logs = {one.application.topics.dead_letters: one.dead_letters for one in loops.all()}
    follower = DeadLetterReader(kafka.blocking_reader("console-dead-letters", options=TAIL), logs)
    async with AsyncExitStack() as stack:
        follower.start()
        stack.push_async_callback(asyncio.to_thread, follower.close)
        await stack.enter_async_context(Sampler(dependencies, admin, topics).sampling(loops.record))
        yield Console(loops, dependencies.settings.jars)
