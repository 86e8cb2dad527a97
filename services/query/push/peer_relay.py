"""The relay from one other instance: a WebSocket for all subscriptions of this instance that it serves."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import ClientError, ClientWebSocketResponse, WSMsgType

from services.query.lookup.version_reference import parse_tag
from services.query.push.notification import Notification, NotificationKind, gone_window_body
from services.query.push.relayed_subscriptions import RelayedSubscriptions
from services.query.push.subscription import StoreScan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from services.query.push.subscription import Subscription

log = logging.getLogger(__name__)

RETRY_S = 0.2
"""After how long a broken connection is opened again. The cluster reports when the instance is gone."""
GONE = frozenset(NotificationKind) - {NotificationKind.STATE}
ANSWER = b'"answer":'


class PeerRelay:
    """`connect` opens the WebSocket. `on_delivered` is called after a message was delivered to subscriptions.

    `since` returns the offsets after which the instance must deliver, of the partitions that it serves.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        since: Callable[[Subscription], Mapping[int, int | None]],
        on_delivered: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._connect = connect
        self._on_delivered = on_delivered
        self._clock = clock
        self._subscriptions = RelayedSubscriptions(since)
        self._changed = asyncio.Event()
        self._handlers = {
            "subscribed": self._on_acknowledged,
            "unsubscribed": self._on_acknowledged,
            "resumed": self._on_acknowledged,
            "begun": self._on_started,
            "current": self._on_initial_state,
            "mark": self._on_mark,
            "reset": self._on_reset,
            "error": self._on_error,
        }

    def __len__(self) -> int:
        return len(self._subscriptions)

    def add(self, subscription: Subscription) -> None:
        """Relay the subscription, over this connection and later ones."""
        self._subscriptions.add(subscription)
        self._changed.set()

    def remove(self, subscription: Subscription) -> None:
        """Do not relay the subscription any more."""
        self._subscriptions.remove(subscription)
        self._changed.set()

    def resume(self, subscription: Subscription, partition: int) -> None:
        """Request what came after the delivered offset of a partition that the instance serves now."""
        self._subscriptions.resume(subscription, partition)
        self._changed.set()

    async def run(self) -> None:
        """Connect, and reconnect, until cancelled."""
        while True:
            self._subscriptions.reset()
            try:
                async with self._connect() as socket:
                    await self._converse(socket)
            except (ClientError, OSError, TimeoutError) as error:
                log.info("relay from another instance is down", extra={"facts": {"why": str(error)}})
            except Exception:  # any other error must not leave the clients without changes either
                log.exception("relay from another instance failed and reconnects")
            await asyncio.sleep(RETRY_S)

    async def _converse(self, socket: ClientWebSocketResponse) -> None:
        """Send commands and receive messages until either ends."""
        both = [asyncio.create_task(one(socket)) for one in (self._send, self._receive)]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in both:
                one.cancel()
            ended = await asyncio.gather(*both, return_exceptions=True)
        for found in ended:
            if isinstance(found, Exception):
                raise found

    async def _receive(self, socket: ClientWebSocketResponse) -> None:
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                self._handle(message.data.encode())
                self._on_delivered()

    async def _send(self, socket: ClientWebSocketResponse) -> None:
        while True:
            self._changed.clear()
            while (command := self._subscriptions.next_command()) is not None:
                await socket.send_str(orjson.dumps(command).decode())
            await self._changed.wait()

    def _handle(self, raw: bytes) -> None:
        message = orjson.loads(raw)
        kind, ids = message["type"], message.get("ids") or [message.get("id")]
        subscriptions = self._subscriptions.named(ids)
        if kind in self._handlers:
            self._handlers[kind](subscriptions, message)
        elif kind == NotificationKind.STATE:
            notification = self._value_notification(message, raw)
            for subscription in subscriptions:
                subscription.deliver(notification)
        elif kind in GONE:
            notification = self._gone_notification(message)
            for subscription in subscriptions:
                subscription.deliver_gone(notification)

    def _gone_notification(self, message: dict[str, Any]) -> Notification:
        """The notification of a key without a value, in a windowed state of a window of it."""
        kind, state, key = NotificationKind(message["type"]), message["state"], message["key"]
        if "window_start" not in message:
            return Notification(kind, state, key, self._clock())
        text = message["window_start"]
        start = None if text is None else round(datetime.fromisoformat(text).timestamp() * 1000)
        body = gone_window_body(state, key, text)
        return Notification(kind, state, key, self._clock(), window_start=start, make=lambda: body)

    def _value_notification(self, message: dict[str, Any], raw: bytes) -> Notification:
        """The notification of a value, with the bytes of the answer as they are.

        It has no offset: a later value may have replaced one that was queued before others. Marks report how far
        everything was delivered.
        """
        answer, body = message["answer"], raw[raw.index(ANSWER) + len(ANSWER) : -1]
        order = parse_tag(message["tag"])
        is_windowed = order is not None and "window_end" in answer
        return Notification(
            NotificationKind.STATE,
            answer["state"],
            answer["key"],
            self._clock(),
            order=order,
            window_start=order[0] if order is not None and is_windowed else None,
            tag=message["tag"],
            size=len(body),
            make=lambda: body,
        )

    def _on_acknowledged(self, _: list[Subscription], message: dict[str, Any]) -> None:
        self._subscriptions.acknowledge(message["id"])

    def _on_started(self, subscriptions: list[Subscription], message: dict[str, Any]) -> None:
        """The instance delivers these partitions from here on. Present values that are wanted follow."""
        offsets = {int(number): offset for number, offset in message["reached"].items()}
        for subscription in subscriptions:
            subscription.delivered_offsets.update(offsets)
            if not subscription.current:
                subscription.started.update(offsets)

    def _on_initial_state(self, subscriptions: list[Subscription], message: dict[str, Any]) -> None:
        for subscription in subscriptions:
            subscription.started.update(message["partitions"])
            if subscription.current:
                subscription.sink.scan(StoreScan(subscription, message["partitions"], is_initial=True, done=True))

    def _on_mark(self, _: list[Subscription], message: dict[str, Any]) -> None:
        """Everything before these positions was delivered."""
        for one in self._subscriptions.settled():
            positions = message["states"].get(one.filter.state, {}).get("positions", {})
            for partition, position in positions.items():
                offset = one.delivered_offsets.get(int(partition), -1)
                one.delivered_offsets[int(partition)] = max(offset, position - 1)

    def _on_reset(self, subscriptions: list[Subscription], _: dict[str, Any]) -> None:
        """This instance was too slow. A key is requested again; clients of many keys must read again."""
        for subscription in subscriptions:
            if subscription.filter.key is None:
                subscription.sink.reset()
            else:
                self.remove(subscription)
                self.add(subscription)

    def _on_error(self, subscriptions: list[Subscription], message: dict[str, Any]) -> None:
        self._on_acknowledged(subscriptions, message)
        log.warning("another instance rejected a subscription", extra={"facts": message["problem"]})
