"""One key, told as it changes, by server-sent events."""

from __future__ import annotations

import json
from contextlib import aclosing
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp

from services.client.errors import Unreadable
from services.client.lasting import Aim
from services.client.replies import failure
from services.client.sse import Parser
from services.client.transport import Reply, after_s, unreachable
from services.client.tries import TryAgain
from services.client.updates import MARK, Mark, Shown, mark, update

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from services.client.highest import Highest
    from services.client.lasting import Lasting
    from services.client.sse import ServerEvent
    from services.client.transport import Transport
    from services.client.updates import Update

SILENCE_S = 20.0
"""Marks come every 5 seconds: a stream that is silent for so long is dead, though nobody says so."""
RESET = "reset"
"""Events were lost. Of one key there is nothing to read anew: its latest value comes next."""
PROBLEM = "problem"
"""The token does not reach so far any more, and the stream ends: the next try tells more."""
STREAM = "text/event-stream"


class Watched(NamedTuple):
    """What is watched. Marks are told only if they are wanted."""

    state: str
    key: str
    target: str
    marks: bool
    patience_s: float
    read: Callable[[Any], Any]


class Watch:
    """Tells of one key."""

    def __init__(self, watched: Watched, transport: Transport, highest: Highest) -> None:
        self._watched = watched
        self._transport = transport
        self._shown = Shown(highest)
        self._last_id: str | None = None

    def updates(self, lasting: Lasting) -> AsyncGenerator[Update[Any] | Mark, None]:
        """What becomes of the key, for as long as one reads. Raises NoAnswer, Refused and Unreadable."""
        place = self._watched.state, self._watched.key
        aim = Aim(f"watching {'/'.join(place)}", place, self._watched.patience_s)
        return self._shown.new(lasting.stream(aim, self._told))

    async def _told(self, url: str) -> AsyncGenerator[Update[Any] | Mark | None, None]:
        async with aclosing(self._events(url)) as events:
            async for event in events:
                self._last_id = event.id or self._last_id
                unwanted = event.name in (RESET, PROBLEM) or (event.name == MARK and not self._watched.marks)
                yield None if unwanted else self._read(url, event)

    def _read(self, url: str, event: ServerEvent) -> Update[Any] | Mark:
        try:
            body = json.loads(event.data)
            return mark(body) if event.name == MARK else update(event.name, body, self._watched.read)
        except (KeyError, TypeError, ValueError) as error:
            raise Unreadable(url, f"of an event {event.name!r}, {error}") from error

    async def _events(self, url: str) -> AsyncGenerator[ServerEvent, None]:
        headers = {"Accept": STREAM, **({"Last-Event-ID": self._last_id} if self._last_id else {})}
        parser = Parser()
        try:
            async with self._transport.stream(url, self._watched.target, headers, SILENCE_S) as answer:
                await self._check(url, answer)
                async for piece in answer.content.iter_any():
                    for event in parser.feed(piece):
                        yield event
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise unreachable(url, error) from error
        raise TryAgain(f"{url}: the stream ended")

    async def _check(self, url: str, answer: aiohttp.ClientResponse) -> None:
        """Raises what the status stands for."""
        if answer.status != HTTPStatus.OK:
            try:
                body = json.loads(await answer.read())
            except ValueError:
                body = None
            reply = Reply(url, answer.status, body, after_s(answer))
            raise failure(reply, f"{self._watched.state}/{self._watched.key}")
        if answer.content_type != STREAM:
            raise Unreadable(url, f"{answer.content_type}, and no stream")
