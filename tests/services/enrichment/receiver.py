"""A receiver of webhooks: real HTTP, with answers that a test decides. It notes each attempt."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from aiohttp import web

from contracts.wire.alert_record import AlertEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

ACCEPTED = 202


class Attempt(NamedTuple):
    """One call, and the status that it got. `began` and `ended` are places in the order of all calls."""

    event: AlertEvent
    content: bytes
    headers: Mapping[str, str]
    status: int
    began: int
    ended: int

    @property
    def key(self) -> str:
        return self.headers["Idempotency-Key"]

    @property
    def is_accepted(self) -> bool:
        return self.status == ACCEPTED


class Receiver:
    """Answers with `status()` after `seconds`, with these headers."""

    def __init__(self, status: Callable[[], int] = lambda: ACCEPTED, seconds: float = 0.0) -> None:
        self.status = status
        self.seconds = seconds
        self.headers: dict[str, str] = {}
        self.attempts: list[Attempt] = []
        self.url = ""
        self._order = count()

    def accepted(self) -> set[str]:
        """The keys of the events that were accepted."""
        return {attempt.key for attempt in self.attempts if attempt.is_accepted}

    def assert_ordered(self) -> None:
        """Each alert: closed is sent after opened was accepted."""
        opened = {
            attempt.event.id: attempt.ended
            for attempt in reversed(self.attempts)
            if attempt.event.event == "opened" and attempt.is_accepted
        }
        for attempt in self.attempts:
            if attempt.event.event == "closed":
                assert opened[attempt.event.id] < attempt.began, attempt

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Receiver]:
        application = web.Application()
        application.router.add_post("/base/hooks", self._receive)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/base"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _receive(self, request: web.Request) -> web.Response:
        began = next(self._order)
        content = await request.read()
        await asyncio.sleep(self.seconds)
        status = self.status()
        event = AlertEvent.model_validate_json(content)
        self.attempts.append(Attempt(event, content, dict(request.headers), status, began, next(self._order)))
        return web.Response(status=status, headers=self.headers)
