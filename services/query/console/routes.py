"""The console's routes: the page, and the JSON that it draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from aiohttp import web

from services.query.api.parameters import asked
from services.query.api.problems import AGAIN_S, Problem
from services.query.api.reply import told
from services.query.console.graph import graph
from services.query.console.page import send
from services.query.console.parameters import OfLetters, OfLoop

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel

    from contracts import Application
    from services.query.console.course import Course
    from services.query.console.letters import Letters


class Console:
    """Answers from what was gathered. `sees_records`: whether a request may see records of any device."""

    def __init__(
        self,
        application: Application,
        course: Course,
        letters: Letters,
        sees_records: Callable[[web.Request], bool],
    ) -> None:
        self._application = application
        self._course = course
        self._letters = letters
        self._sees_records = sees_records

    def routes(self) -> list[web.RouteDef]:
        """The page's own routes hold no data, and need no token."""
        return [
            web.get("/", send),
            web.get("/console/{file:.+}", send),
            web.get("/v1/loop", self.loop),
            web.get("/v1/loop/graph", self.graph),
            web.get("/v1/loop/dead_letters", self.dead_letters),
        ]

    async def loop(self, request: web.Request) -> web.Response:
        """The figures and the verdict; `since` (milliseconds since 1970) asks for their course after that time."""
        found = self._course.answer(asked(OfLoop, request).since)
        return _not_yet() if found is None else _json(found)

    async def graph(self, _: web.Request) -> web.Response:
        """The application's enrichments with their counts."""
        span = self._course.span
        return _not_yet() if span is None else _json(graph(self._application, *span))

    async def dead_letters(self, request: web.Request) -> web.Response:
        """The counts by reason and the latest letters, without what devices sent for who may not see all of them."""
        found = self._letters.answer(asked(OfLetters, request).limit)
        if not self._sees_records(request):
            hidden = {"key": None, "head": None, "response": None, "detail": None}
            found = found.model_copy(update={"latest": tuple(one.model_copy(update=hidden) for one in found.latest)})
        return _json(found)


def _json(answer: BaseModel) -> web.Response:
    body = orjson.dumps(answer.model_dump(mode="json"))
    return web.Response(body=body, content_type="application/json", headers={"Cache-Control": "no-store"})


def _not_yet() -> web.Response:
    return told(Problem("catching_up", "The loop was not looked at yet", retry_after=AGAIN_S)).response()
