"""One other instance, from which this one is told of what that one answers for: a WebSocket for all clients here."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import ClientError, ClientWebSocketResponse, WSMsgType

from services.query.lookup.version_reference import parse_tag
from services.query.push.notification import Notification, NotificationKind
from services.query.push.relayed_subscriptions import RelayedSubscriptions
from services.query.push.store_scanner import StoreScan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from services.query.push.subscription import Subscription

log = logging.getLogger(__name__)

AGAIN_S = 0.2
"""After how long a connection that broke is tried again; the cluster says when nobody is there any more."""
GONE = frozenset(NotificationKind) - {NotificationKind.STATE}
ANSWER = b'"answer":'


class PeerRelay:
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
        self._told = told
        self._clock = clock
        self._wishes = RelayedSubscriptions(since)
        self._wished = asyncio.Event()
        self._heard = {
            "subscribed": self._answered,
            "unsubscribed": self._answered,
            "resumed": self._answered,
            "begun": self._begun,
            "current": self._present,
            "mark": self._mark,
            "reset": self._reset,
            "error": self._error,
        }

    def __len__(self) -> int:
        return len(self._wishes)

    def keep(self, subscription: Subscription) -> None:
        """Be told for it, from now on and over every connection."""
        self._wishes.add(subscription)
        self._wished.set()

    def unsubscribe(self, subscription: Subscription) -> None:
        """Be told for it no more."""
        self._wishes.drop(subscription)
        self._wished.set()

    def resume(self, subscription: Subscription, partition: int) -> None:
        """That instance answers for the partition now: be told what came after what was told before."""
        self._wishes.resume(subscription, partition)
        self._wished.set()

    async def run(self) -> None:
        """Keep the connection until cancelled."""
        while True:
            self._wishes.start_anew()
            try:
                async with self._connect() as socket:
                    await self._converse(socket)
            except (ClientError, OSError, TimeoutError) as error:
                log.info("no link to another instance", extra={"facts": {"why": str(error)}})
            except Exception:  # whatever it was: who watches here must be told again
                log.exception("a link to another instance failed, and starts anew")
            await asyncio.sleep(AGAIN_S)

    async def _converse(self, socket: ClientWebSocketResponse) -> None:
        """Ends when either ends."""
        both = [asyncio.create_task(one(socket)) for one in (self._speak, self._listen)]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in both:
                one.cancel()
            ended = await asyncio.gather(*both, return_exceptions=True)
        for found in ended:
            if isinstance(found, Exception):
                raise found

    async def _listen(self, socket: ClientWebSocketResponse) -> None:
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                self._hear(message.data.encode())
                self._told()

    async def _speak(self, socket: ClientWebSocketResponse) -> None:
        while True:
            self._wished.clear()
            while (said := self._wishes.next()) is not None:
                await socket.send_str(orjson.dumps(said).decode())
            await self._wished.wait()

    def _hear(self, raw: bytes) -> None:
        message = orjson.loads(raw)
        kind, ids = message["type"], message.get("ids") or [message.get("id")]
        known = self._wishes.named(ids)
        if kind in self._heard:
            self._heard[kind](known, message)
        elif kind == NotificationKind.STATE:
            notice = self._value(message, raw)
            for one in known:
                one.tell(notice)
        elif kind in GONE:
            notice = Notification(NotificationKind(kind), message["state"], message["key"], self._clock())
            for one in known:
                one.tell_gone(notice)

    def _value(self, message: dict[str, Any], raw: bytes) -> Notification:
        """The answer's bytes are handed on as they are.

        Without its offset: a later value may have taken the place of what waited there before others. Marks say how
        far all was told.
        """
        answer, body = message["answer"], raw[raw.index(ANSWER) + len(ANSWER) : -1]
        return Notification(
            NotificationKind.STATE,
            answer["state"],
            answer["key"],
            self._clock(),
            order=parse_tag(message["tag"]),
            tag=message["tag"],
            size=len(body),
            make=lambda: body,
        )

    def _answered(self, _: list[Subscription], message: dict[str, Any]) -> None:
        self._wishes.answered(message["id"])

    def _begun(self, known: list[Subscription], message: dict[str, Any]) -> None:
        """From here on that instance tells of these partitions. Present values that are wanted are still to come."""
        reached = {int(number): offset for number, offset in message["reached"].items()}
        for one in known:
            one.reached.update(reached)
            if not one.current:
                one.begun.update(reached)

    def _present(self, known: list[Subscription], message: dict[str, Any]) -> None:
        for one in known:
            one.begun.update(message["partitions"])
            if one.current:
                one.outbox.read(StoreScan(one, message["partitions"], first=True, done=True))

    def _mark(self, _: list[Subscription], message: dict[str, Any]) -> None:
        """All before these positions has been told."""
        for one in self._wishes.settled():
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

    def _error(self, known: list[Subscription], message: dict[str, Any]) -> None:
        self._answered(known, message)
        log.warning("another instance refused a subscription", extra={"facts": message["problem"]})
