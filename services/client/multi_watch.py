"""Watches many keys, prefixes and filters over one WebSocket, which reconnects when it breaks."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson

from contracts.api import WATCH_MANY
from services.client.decoding import reader
from services.client.errors import InvalidResponseError
from services.client.reconnecting_stream import StreamTarget
from services.client.request_sender import ATTEMPT_S
from services.client.responses import failure
from services.client.retrier import AttemptFailedError
from services.client.subscriptions import NEWEST, WatchFilter, subscribe
from services.client.transport import InstanceResponse, unreachable
from services.client.watch_updates import MARK, STATE, Mark, YieldedVersions, mark, update

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from services.client.high_water_marks import HighWaterMarks
    from services.client.reconnecting_stream import ReconnectingStream
    from services.client.transport import ClientTransport
    from services.client.watch_updates import Update

SIGNS = ("subscribed", "unsubscribed", "current")
"""Messages without an update of a key."""
RESET = "reset"
"""The client was too slow and missed changes."""
ERROR = "error"
ENDS = ("no_token", "too_slow")
"""The token has expired, or this client was too slow, and the connection closes: the next attempt gets the reason."""


class MultiWatch:
    """Subscribes by numbered filters, and yields what arrives."""

    def __init__(
        self,
        interests: Sequence[WatchFilter],
        transport: ClientTransport,
        high_water_marks: HighWaterMarks,
        *,
        marks: bool,
    ) -> None:
        self._interests = {str(number): interest for number, interest in enumerate(interests)}
        self._transport = transport
        by_window = {interest.state for interest in interests if interest.window != NEWEST}
        self._delivered = YieldedVersions(high_water_marks, by_window)
        self._marks = marks
        self._tags: dict[str, str] = {}
        """The tag of the last update of each filter for one key."""

    def updates(self, stream: ReconnectingStream, patience_s: float) -> AsyncGenerator[Update[Any] | Mark, None]:
        """Yield the updates until the caller stops. Raises NoAnswerError, RejectedError, InvalidResponseError."""
        states = sorted({interest.state for interest in self._interests.values()})
        aim = StreamTarget(f"watching {', '.join(states)}", None, patience_s)
        return self._delivered.filter(stream.stream(aim, self._connect))

    async def _connect(self, url: str) -> AsyncGenerator[Update[Any] | Mark | None, None]:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(ATTEMPT_S):  # of the connection: a frozen peer accepts it without a response
                    socket = await stack.enter_async_context(self._transport.socket(url, WATCH_MANY.path))
                await self._subscribe(socket)
                async for frame in socket:
                    if frame.type is aiohttp.WSMsgType.ERROR:
                        raise unreachable(url, socket.exception() or ConnectionError())
                    if frame.type is not aiohttp.WSMsgType.TEXT:
                        raise InvalidResponseError(url, "a message that is no text")
                    message = _message(url, frame.data)
                    if message["type"] == RESET:
                        await self._subscribe(socket)
                    yield self._read(url, message)
        except aiohttp.WSServerHandshakeError as error:
            raise failure(InstanceResponse(url, error.status, None, None), WATCH_MANY.path) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise unreachable(url, error) from error
        raise AttemptFailedError(f"{url}: the connection ended")

    async def _subscribe(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        for name, interest in self._interests.items():
            await socket.send_str(orjson.dumps(subscribe(name, interest, self._tags.get(name))).decode())

    def _read(self, url: str, message: Mapping[str, Any]) -> Update[Any] | Mark | None:
        kind = message["type"]
        try:
            if kind in SIGNS or kind == RESET or (kind == MARK and not self._marks):
                return None
            if kind == MARK:
                return mark(message)
            if kind == ERROR and message["id"] is None and message["problem"]["type"] in ENDS:
                return None
            if kind == ERROR:
                raise self._refused(url, message)
            body = message["answer"] if kind == STATE else message
            for name in message["ids"] if kind == STATE else ():
                self._note(name, message["tag"])
            return update(kind, body, reader(body["state"], body["key"], None))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidResponseError(url, f"of a message {kind!r}, {error}") from error

    def _note(self, name: str, tag: str) -> None:
        if self._interests[name].key is not None:
            self._tags[name] = tag

    def _refused(self, url: str, message: Mapping[str, Any]) -> Exception:
        problem = message["problem"]
        interest = self._interests.get(message["id"])
        return failure(InstanceResponse(url, problem["status"], problem, None), str(interest))


def _message(url: str, text: str) -> Mapping[str, Any]:
    try:
        message = orjson.loads(text)
    except ValueError as error:
        raise InvalidResponseError(url, "a message that is no JSON") from error
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise InvalidResponseError(url, "a message without type")
    return message
