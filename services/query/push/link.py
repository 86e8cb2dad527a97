"""One other instance, from which this one is told of what that one answers for: a WebSocket for all clients here."""

from __future__ import annotations

import asyncio
import logging
from itertools import count
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import ClientError, ClientWebSocketResponse, WSMsgType

from services.query.push.notice import Kind, Notice
from services.query.push.reading import Reading
from services.query.push.tags import order

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from services.query.push.subscription import Subscription

log = logging.getLogger(__name__)

AGAIN_S = 0.2
"""After how long a connection that broke is tried again; the cluster says when nobody is there any more."""
GONE = frozenset(Kind) - {Kind.STATE}
ANSWER = b'"answer":'


class Link:
    """`connect` opens the WebSocket. `told` is called when subscriptions were told something.

    `since` says of a subscription after which offsets that instance is to tell the partitions that it answers for.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        since: Callable[[Subscription], Mapping[int, int | None]],
        told: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._connect = connect
        self._since = since
        self._told = told
        self._clock = clock
        self._count = count(1)
        self._subscriptions: dict[str, Subscription] = {}
        self._names: dict[Subscription, str] = {}
        self._waiting: list[dict[str, Any]] = []
        self._spoken = asyncio.Event()
        self._heard = {
            "begun": self._begun,
            "current": self._present,
            "mark": self._mark,
            "reset": self._reset,
            "error": self._error,
        }

    def __len__(self) -> int:
        return len(self._subscriptions)

    def keep(self, subscription: Subscription) -> None:
        """Be told for it, from now on and over every connection."""
        if subscription not in self._names:
            name = self._names[subscription] = f"{next(self._count)}"
            self._subscriptions[name] = subscription
            self._say(self._wish(name, subscription))

    def unsubscribe(self, subscription: Subscription) -> None:
        """Be told for it no more."""
        name = self._names.pop(subscription, None)
        if name is not None:
            del self._subscriptions[name]
            self._say({"type": "unsubscribe", "id": name})

    def resume(self, subscription: Subscription, partition: int, since: int | None) -> None:
        """That instance answers for the partition now: be told what came after the offset."""
        name = self._names.get(subscription)
        if name is not None:
            self._say({"type": "resume", "id": name, "partitions": {str(partition): since}})

    async def run(self) -> None:
        """Keep the connection until cancelled."""
        while True:
            try:
                async with self._connect() as socket:
                    self._waiting = [self._wish(name, one) for name, one in self._subscriptions.items()]
                    await self._converse(socket)
            except (ClientError, OSError, TimeoutError) as error:
                log.info("no link to another instance", extra={"facts": {"why": str(error)}})
            await asyncio.sleep(AGAIN_S)

    async def _converse(self, socket: ClientWebSocketResponse) -> None:
        speaking = asyncio.create_task(self._speak(socket))
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    self._hear(message.data.encode())
                    self._told()
        finally:
            speaking.cancel()
            await asyncio.gather(speaking, return_exceptions=True)

    async def _speak(self, socket: ClientWebSocketResponse) -> None:
        while True:
            said, self._waiting = self._waiting, []
            for one in said:
                await socket.send_str(orjson.dumps(one).decode())
            if not self._waiting:
                self._spoken.clear()
                await self._spoken.wait()

    def _say(self, message: dict[str, Any]) -> None:
        self._waiting.append(message)
        self._spoken.set()

    def _wish(self, name: str, subscription: Subscription) -> dict[str, Any]:
        asked = subscription.interest
        what = {"prefix": asked.prefix, "where": dict(asked.where)} if asked.key is None else {"key": asked.key}
        since = {str(one): offset for one, offset in self._since(subscription).items()}
        current = subscription.current or (asked.key is not None and bool(subscription.begun))
        return {"type": "subscribe", "id": name, "state": asked.state, **what, "current": current, "partitions": since}

    def _hear(self, raw: bytes) -> None:
        message = orjson.loads(raw)
        kind, ids = message["type"], message.get("ids") or [message.get("id")]
        known = [self._subscriptions[one] for one in ids if one in self._subscriptions]
        if kind in self._heard:
            self._heard[kind](known, message)
        elif kind == Kind.STATE:
            notice = self._value(message, raw)
            for one in known:
                one.tell(notice)
        elif kind in GONE:
            notice = Notice(Kind(kind), message["state"], message["key"], self._clock())
            for one in known:
                one.tell_gone(notice)

    def _value(self, message: dict[str, Any], raw: bytes) -> Notice:
        """The answer's bytes are handed on as they are."""
        answer, body = message["answer"], raw[raw.index(ANSWER) + len(ANSWER) : -1]
        return Notice(
            Kind.STATE,
            answer["state"],
            answer["key"],
            self._clock(),
            order=order(message["tag"]),
            tag=message["tag"],
            partition=answer["source"]["partition"],
            offset=answer["source"]["offset"],
            size=len(body),
            make=lambda: body,
        )

    def _begun(self, known: list[Subscription], message: dict[str, Any]) -> None:
        """From here on that instance tells of these partitions. Present values that are wanted are still to come."""
        reached = {int(number): offset for number, offset in message["reached"].items()}
        for one in known:
            one.reached = reached | one.reached
            if not one.current:
                one.begun.update(reached)

    def _present(self, known: list[Subscription], message: dict[str, Any]) -> None:
        for one in known:
            one.begun.update(message["partitions"])
            if one.current:
                one.outbox.read(Reading(one, message["partitions"], first=True, done=True))

    def _mark(self, _: list[Subscription], message: dict[str, Any]) -> None:
        """All before these positions has been told."""
        for one in self._names:
            positions = message["states"].get(one.interest.state, {}).get("positions", {})
            for partition, position in positions.items():
                reached = one.reached.get(int(partition), -1)
                one.reached[int(partition)] = max(reached, position - 1)

    def _reset(self, known: list[Subscription], _: dict[str, Any]) -> None:
        """This instance was too slow for that one. A key is asked for again; many keys, their clients have to read."""
        for one in known:
            if one.interest.key is None:
                one.outbox.lose()
            else:
                self.unsubscribe(one)
                self.keep(one)

    def _error(self, _: list[Subscription], message: dict[str, Any]) -> None:
        log.warning("another instance refused a subscription", extra={"facts": message["problem"]})
