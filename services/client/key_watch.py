"""Watches one key by server-sent events."""

from __future__ import annotations

import json
from contextlib import aclosing
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp

from services.client.errors import InvalidResponseError
from services.client.reconnecting_stream import StreamTarget
from services.client.responses import failure
from services.client.retrier import AttemptFailedError
from services.client.sse import Parser
from services.client.transport import InstanceResponse, after_s, unreachable
from services.client.watch_updates import MARK, Mark, YieldedVersions, mark, update

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from services.client.high_water_marks import HighWaterMarks
    from services.client.reconnecting_stream import ReconnectingStream
    from services.client.sse import ServerEvent
    from services.client.transport import ClientTransport
    from services.client.watch_updates import Update

SILENCE_S = 20.0
"""The service sends a mark every 5 seconds: a stream that is silent for this long is dead."""
RESET = "reset"
"""Events were lost. A watch of one key ignores this: the latest value comes next."""
PROBLEM = "problem"
"""The token's scope has shrunk, and the stream ends: the next attempt gets the reason."""
STREAM = "text/event-stream"


class WatchedKey(NamedTuple):
    """The key to watch. Progress marks are yielded only if `marks` is set, and versions compared `by_window`."""

    state: str
    key: str
    target: str
    marks: bool
    patience_s: float
    read: Callable[[Any], Any]
    by_window: bool = False


class KeyWatch:
    """Yields the updates of one key."""

    def __init__(self, watched: WatchedKey, transport: ClientTransport, high_water_marks: HighWaterMarks) -> None:
        self._watched = watched
        self._transport = transport
        self._delivered = YieldedVersions(high_water_marks, {watched.state} if watched.by_window else set())
        self._last_id: str | None = None

    def updates(self, stream: ReconnectingStream) -> AsyncGenerator[Update[Any] | Mark, None]:
        """Yield the updates until the caller stops. Raises NoAnswerError, RejectedError, InvalidResponseError."""
        place = self._watched.state, self._watched.key
        aim = StreamTarget(f"watching {'/'.join(place)}", place, self._watched.patience_s)
        return self._delivered.filter(stream.stream(aim, self._connect))

    async def _connect(self, url: str) -> AsyncGenerator[Update[Any] | Mark | None, None]:
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
            raise InvalidResponseError(url, f"of an event {event.name!r}, {error}") from error

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
        raise AttemptFailedError(f"{url}: the stream ended")

    async def _check(self, url: str, answer: aiohttp.ClientResponse) -> None:
        """Raise the error of a response that is no stream."""
        if answer.status != HTTPStatus.OK:
            try:
                body = json.loads(await answer.read())
            except ValueError:
                body = None
            reply = InstanceResponse(url, answer.status, body, after_s(answer))
            raise failure(reply, f"{self._watched.state}/{self._watched.key}")
        if answer.content_type != STREAM:
            raise InvalidResponseError(url, f"{answer.content_type}, and no stream")
