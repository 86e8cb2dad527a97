"""Watches keys, prefixes and filters over one WebSocket, which reconnects when it breaks."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal

import aiohttp
import orjson

from contracts.api.watch import WATCH_MANY
from services.client.answers import GONE, found, reader
from services.client.errors import AttemptFailedError, InvalidResponseError, RejectedError
from services.client.high_water_marks import YieldedVersions
from services.client.read_options import parameter
from services.client.request_sender import ATTEMPT_S
from services.client.responses import failure
from services.client.transport import InstanceResponse, NoSocketError, unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from services.client.answers import Update
    from services.client.high_water_marks import HighWaterMarks
    from services.client.request_sender import RequestSender
    from services.client.transport import ClientTransport

Window = Literal["newest", "all"] | datetime
NEWEST: Final = "newest"
PATIENCE_S = 60.0
STATE, MARK, ERROR, REMOVED = "state", "mark", "error", "removed"
RESET = "reset"
"""The client missed changes."""
ENDS = ("no_token", "too_slow")
"""The token has expired, or this client was too slow, and the connection closes: the next attempt gets the reason."""


@dataclass(frozen=True)
class WatchFilter:
    """A key of a state; or, where `key` is None, all keys with this prefix and these values of fields.

    `current`: the present values are delivered first. Without it, changes during a reconnect are not delivered.
    `silent_for`: a key is delivered when its last record is older than this, and as Left when it is back.
    `window`, of a windowed state: "newest" (each key's newest window), "all" of them, or the one that contains a time.
    """

    state: str
    key: str | None = None
    prefix: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    current: bool = True
    window: Window = NEWEST
    silent_for: timedelta | None = None

    def __str__(self) -> str:
        return repr(self) if self.key is None else f"{self.state}/{self.key}"

    def command(self, name: str, after: str | None) -> dict[str, Any]:
        """Return the message that subscribes under this name. `after` is the tag of the last update of the key."""
        members = {
            "type": "subscribe",
            "id": name,
            "state": self.state,
            "current": self.current,
            "window": None if self.window == NEWEST else parameter(self.window),
            "silent_for": parameter(self.silent_for),
            "key": self.key,
            "after": after,
            **({} if self.key is not None else {"prefix": self.prefix, "where": dict(self.where)}),
        }
        return {member: value for member, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Mark:
    """The lag of this watch behind the instance, and of the instance behind the topics.

    So many keys wait for the watch, the oldest of them for so long. `conflated` is how many changes it never saw,
    because a later one of the same key took their place. `lag` has the records still to be read, by state; `positions`
    up to where all has come, by state and partition, when all has.
    """

    waiting: int
    conflated: int
    oldest: timedelta
    lag: Mapping[str, int]
    positions: Mapping[str, Mapping[str, int]]


class Watch:
    """Subscribes by numbered filters, and yields what arrives; values as `model`, marks only if `marks` is set."""

    def __init__(
        self,
        filters: Sequence[WatchFilter],
        transport: ClientTransport,
        high_water_marks: HighWaterMarks,
        *,
        model: type[Any] | None = None,
        marks: bool = False,
    ) -> None:
        self._filters = {str(number): interest for number, interest in enumerate(filters)}
        self._transport = transport
        self._model = model
        self._marks = marks
        by_window = {interest.state for interest in filters if interest.window != NEWEST}
        self._yielded = YieldedVersions(high_water_marks, by_window)
        self._tags: dict[str, str] = {}
        """The tag of the last update of each filter for one key."""

    async def updates(
        self, sender: RequestSender, what: str, patience_s: float
    ) -> AsyncGenerator[Update[Any] | Mark, None]:
        """Yield the updates until the caller stops. Raises NoAnswerError, RejectedError, InvalidResponseError."""
        updates: AsyncGenerator[Update[Any] | Mark, None]
        updates = sender.stream(f"watching {what}", patience_s, partial(self._connect, what))
        async with aclosing(updates):
            async for update in updates:
                if isinstance(update, Mark) or self._yielded.admits(update):
                    yield update

    async def _connect(self, what: str, url: str) -> AsyncGenerator[Update[Any] | Mark | None, None]:
        """Yield the updates of one connection, and None for other messages. Raises AttemptFailedError at its end."""
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(ATTEMPT_S):  # of the connection: a frozen peer accepts it without a response
                    socket = await stack.enter_async_context(self._transport.socket(url, WATCH_MANY.path))
                await self._subscribe(socket)
                async for frame in socket:
                    if frame.type is aiohttp.WSMsgType.ERROR:
                        raise unreachable(url, socket.exception() or ConnectionError())
                    message = _message(url, frame.data)
                    if message["type"] == RESET:
                        await self._subscribe(socket)
                    yield self._read(url, message)
        except NoSocketError as error:
            raise failure(error.response._replace(url=url), what) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise unreachable(url, error) from error
        raise AttemptFailedError(f"{url}: the connection ended")

    async def _subscribe(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        for name, interest in self._filters.items():
            await socket.send_str(orjson.dumps(interest.command(name, self._tags.get(name))).decode())

    def _read(self, url: str, message: Mapping[str, Any]) -> Update[Any] | Mark | None:
        kind = message["type"]
        try:
            if kind == MARK:
                return _mark(message) if self._marks else None
            if kind == ERROR:
                self._check(url, message["id"], message["problem"])
                return None
            if kind == REMOVED:  # any version may follow
                for name in message["ids"]:
                    self._tags.pop(name, None)
            if kind in GONE:
                return GONE[kind](message["state"], message["key"], message)
            if kind != STATE:  # without an update of a key, perhaps of a later release
                return None
            for name in message["ids"]:
                if self._filters[name].key is not None:
                    self._tags[name] = message["tag"]
            answer = message["answer"]
            return found(answer, reader(answer["state"], answer["key"], self._model))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidResponseError(url, f"of a message {kind!r}, {error}") from error

    def _check(self, url: str, name: str | None, problem: Mapping[str, Any]) -> None:
        """Raise the error for the problem of a subscription; not for one that the next attempt gets as a response.

        One subscription too many is refused without a time after which to try again: it is each time.
        """
        if name is None and problem["type"] in ENDS:
            return
        what, after_s = str(self._filters.get(name or "", WATCH_MANY.path)), problem.get("retry_after")
        if problem["status"] == HTTPStatus.TOO_MANY_REQUESTS and after_s is None:
            raise RejectedError(what, problem["status"], problem)
        raise failure(InstanceResponse(url, problem["status"], problem, after_s), what)


def _message(url: str, text: str) -> Mapping[str, Any]:
    try:
        message = orjson.loads(text)
    except ValueError as error:
        raise InvalidResponseError(url, "a message that is no JSON") from error
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise InvalidResponseError(url, "a message without type")
    return message


def _mark(message: Mapping[str, Any]) -> Mark:
    """Return the mark of a message. Raises KeyError, TypeError or ValueError for an invalid one."""
    states = message["states"]
    return Mark(
        waiting=int(message["waiting"]),
        conflated=int(message["conflated"]),
        oldest=timedelta(milliseconds=message["oldest_ms"]),
        lag={name: int(state["lag"]["records"]) for name, state in states.items()},
        positions={name: state["positions"] for name, state in states.items() if "positions" in state},
    )
