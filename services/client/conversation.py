"""Many keys, prefixes and filters over one WebSocket, which is opened again when it breaks."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson

from services.client.calls import TRY_S
from services.client.errors import Unreadable
from services.client.lasting import Aim
from services.client.reading import reader
from services.client.replies import failure
from services.client.subscriptions import Interest, subscribe
from services.client.transport import Reply, unreachable
from services.client.tries import TryAgain
from services.client.updates import MARK, STATE, Mark, Shown, mark, update

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from services.client.highest import Highest
    from services.client.lasting import Lasting
    from services.client.transport import Transport
    from services.client.updates import Update

TARGET = "/v1/watch"
SIGNS = ("subscribed", "unsubscribed", "current")
"""Messages that say nothing of a key."""
RESET = "reset"
"""This client was so slow that changes are lost to it."""
ERROR = "error"
ENDS = ("no_token", "too_slow")
"""The token counts no longer, or this client was too slow, and the connection ends: the next try tells more."""


class Conversation:
    """Asks for interests, by their numbers, and tells what comes."""

    def __init__(self, interests: Sequence[Interest], transport: Transport, highest: Highest, *, marks: bool) -> None:
        self._interests = {str(number): one for number, one in enumerate(interests)}
        self._transport = transport
        self._shown = Shown(highest)
        self._marks = marks
        self._tags: dict[str, str] = {}
        """What was told last of each interest in one key."""

    def updates(self, lasting: Lasting, patience_s: float) -> AsyncGenerator[Update[Any] | Mark, None]:
        """What becomes of the keys, for as long as one reads. Raises NoAnswer, Refused and Unreadable."""
        states = sorted({one.state for one in self._interests.values()})
        aim = Aim(f"watching {', '.join(states)}", None, patience_s)
        return self._shown.new(lasting.stream(aim, self._told))

    async def _told(self, url: str) -> AsyncGenerator[Update[Any] | Mark | None, None]:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(TRY_S):  # of the connection: one that is frozen takes it, and says nothing
                    socket = await stack.enter_async_context(self._transport.socket(url, TARGET))
                await self._subscribe(socket)
                async for said in socket:
                    if said.type is aiohttp.WSMsgType.ERROR:
                        raise unreachable(url, socket.exception() or ConnectionError())
                    if said.type is not aiohttp.WSMsgType.TEXT:
                        raise Unreadable(url, "a message that is no text")
                    message = _message(url, said.data)
                    if message["type"] == RESET:
                        await self._subscribe(socket)
                    yield self._read(url, message)
        except aiohttp.WSServerHandshakeError as error:
            raise failure(Reply(url, error.status, None, None), TARGET) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise unreachable(url, error) from error
        raise TryAgain(f"{url}: the connection ended")

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
            raise Unreadable(url, f"of a message {kind!r}, {error}") from error

    def _note(self, name: str, tag: str) -> None:
        if self._interests[name].key is not None:
            self._tags[name] = tag

    def _refused(self, url: str, message: Mapping[str, Any]) -> Exception:
        problem = message["problem"]
        interest = self._interests.get(message["id"])
        return failure(Reply(url, problem["status"], problem, None), str(interest))


def _message(url: str, said: str) -> Mapping[str, Any]:
    try:
        message = orjson.loads(said)
    except ValueError as error:
        raise Unreadable(url, "a message that is no JSON") from error
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise Unreadable(url, "a message without type")
    return message
