"""The items that go to one client, in their order."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Protocol

from services.query.push.send_queue import Delivery
from services.query.push.stream_items import (
    CommandResponse,
    InitialStateSent,
    PartitionsStarted,
    ProgressMark,
    StreamRefused,
    StreamReset,
    SubscriptionDenied,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from services.query.lookup.authentication import Principal
    from services.query.lookup.problems import Problem
    from services.query.push.notification import Notification
    from services.query.push.send_queue import SendQueue
    from services.query.push.store_scanner import StoreScanner
    from services.query.push.stream_items import StreamItem
    from services.query.push.subscription import StoreScan, Subscription

BATCH_BYTES = 32 * 1024
"""About how much is written at once: a value that is queued can still be replaced by a later one."""


class StreamWriter(Protocol):
    """The connection to a client. Its methods raise ConnectionError when the client is gone."""

    @property
    def is_writable(self) -> bool:
        """Whether the client takes what is written."""
        ...

    def write(self, data: bytes) -> None:
        """Write complete frames or chunks."""
        ...

    async def drain(self) -> None:
        """Wait until the client has taken most of it."""
        ...


class ClientStream:
    """The items for one client. Pages are read from the store as fast as the client takes them.

    `on_put` is called when a notification is queued; after a batch of changes its receiver calls `flush`.
    """

    def __init__(
        self,
        principal: Principal,
        scanner: StoreScanner,
        queue: SendQueue[Subscription],
        on_put: Callable[[ClientStream], None],
    ) -> None:
        self.principal = principal
        self.subscriptions: dict[str, Subscription] = {}
        """The client's subscriptions by name."""
        self.queue = queue
        self._scanner = scanner
        self._on_put = on_put
        self._direct: Callable[[], None] | None = None
        self._first: deque[StreamItem] = deque()
        self._scans: deque[StoreScan] = deque()
        self._scanned: deque[tuple[int, InitialStateSent]] = deque()
        self._marked = False
        self._refused: StreamRefused | None = None
        self._ended = False
        self._woken = asyncio.Event()
        self._taken = asyncio.Event()

    def put(self, subscription: Subscription, notification: Notification) -> None:
        """Queue a notification; a later one of its key replaces it."""
        self.queue.put(subscription, notification)
        self._on_put(self)

    def put_first(self, subscription: Subscription, notifications: Iterable[Notification]) -> None:
        """Send each of these before everything that is queued."""
        self._first.extend([Delivery(notification, [subscription])] for notification in notifications)
        self._woken.set()

    def respond(self, message: bytes) -> None:
        """Send the response to a command, before everything that is queued."""
        self._first.append(CommandResponse(message))
        self._woken.set()

    def start(self, subscription: Subscription, offsets: dict[int, int]) -> None:
        """See NotificationSink."""
        self._first.append(PartitionsStarted(subscription, offsets))
        self._woken.set()

    def scan(self, scan: StoreScan) -> None:
        """See NotificationSink."""
        self._scans.append(scan)
        self._woken.set()

    def reset(self) -> None:
        """See NotificationSink."""
        self.queue.overflow()
        self._on_put(self)

    def mark(self) -> None:
        """Send a mark, before everything that is queued."""
        self._marked = True
        self._woken.set()

    def withdraw(self, subscription: Subscription) -> None:
        """Remove everything that is queued for the subscription."""
        self.queue.withdraw(subscription)
        self._first = deque(one for one in self._first if not _is_for(subscription, one))
        self._scans = deque(scan for scan in self._scans if scan.subscription is not subscription)
        self._scanned = deque(one for one in self._scanned if one[1].subscription is not subscription)

    def add(self, subscription: Subscription) -> None:
        """Add a subscription. A queued denial of an earlier one of this name is dropped."""
        self.subscriptions[subscription.name] = subscription
        self._first = deque(one for one in self._first if not _is_denied(subscription.name, one))

    def deny(self, name: str, problem: Problem) -> None:
        """Report that the subscription of this name was ended."""
        self._first.append(SubscriptionDenied(name, problem))
        self._woken.set()

    def refuse(self, problem: Problem) -> None:
        """End the stream with this problem. Nothing that is queued is sent."""
        self._refused = StreamRefused(problem)
        self._woken.set()

    def cut_off(self, problem: Problem) -> None:
        """Drop what is queued at once, and end the stream with this problem."""
        self.refuse(problem)
        self.queue.overflow()

    @property
    def refused(self) -> Problem | None:
        """The problem with which the stream ends or has ended."""
        return None if self._refused is None else self._refused.problem

    def end(self) -> None:
        """Send nothing more."""
        self._ended = True
        self._woken.set()
        self._taken.set()

    async def wait_for_responses(self, limit: int) -> None:
        """Wait while more than so many responses are unsent."""
        while len(self._first) > limit and not self._ended:
            self._taken.clear()
            await self._taken.wait()

    async def run(self, writer: StreamWriter, encode: Callable[[StreamItem], bytes]) -> None:
        """Write items until the end. Raises ConnectionError."""
        while not self._ended:
            self._woken.clear()
            self._write(writer, encode)
            if self._has_items:
                await writer.drain()
            else:
                self._direct = partial(self._write, writer, encode)
                await self._woken.wait()
                self._direct = None

    def flush(self) -> None:
        """Write what is queued: at once, if there is nothing else to send and the client takes it."""
        if self._direct is None or self._first or self._scans or self._scanned:
            self._woken.set()
            return
        try:
            self._direct()
        except ConnectionError:
            self.end()
        if self._has_items:
            self._woken.set()

    @property
    def _has_items(self) -> bool:
        if self._ended or self._refused:
            return not self._ended
        queued = self.queue or self.queue.has_overflowed
        return bool(queued or self._first or self._marked or self._scans or self._scanned)

    def _write(self, writer: StreamWriter, encode: Callable[[StreamItem], bytes]) -> None:
        """Write until there is nothing more, or the client has enough for now."""
        while self._has_items and writer.is_writable:
            item = self.next_item()
            if item is None:  # an empty page: other streams have their turn before the next one
                return
            writer.write(encode(item))

    def next_item(self) -> StreamItem | None:
        """The next item to send; None if there is none now."""
        if self._refused:
            self.end()
            return self._refused
        if self.queue.has_overflowed:
            return self._reset()
        if self._first:
            self._taken.set()
            return self._first.popleft()
        if self._marked:
            self._marked = False
            return ProgressMark(self.queue.lag(), not self.queue and not self._scans)
        if self._scanned and self._scanned[0][0] < self.queue.oldest:
            return self._scanned.popleft()[1]
        if self._scans and self.queue.size < BATCH_BYTES:
            self._read_page(self._scans[0])
        return self.queue.take(BATCH_BYTES) or None

    def _read_page(self, scan: StoreScan) -> None:
        """Queue a page. The last page was sent once the newest slot of the queue was."""
        if not scan.done:
            self._scanner.deliver_page(scan)
        if scan.done and self._scans and self._scans[0] is scan:
            self._scans.popleft()
            if scan.is_initial:
                self._scanned.append((self.queue.newest, InitialStateSent(scan.subscription, scan.partitions)))

    def _reset(self) -> StreamReset:
        """Accept notifications again. What was delivered until now does not count."""
        self._scans.clear()
        self._scanned.clear()
        self.queue.reopen()
        for subscription in self.subscriptions.values():
            subscription.reset()
        return StreamReset()


def _is_for(subscription: Subscription, item: StreamItem) -> bool:
    """Whether the item is for this subscription. Deliveries that go first have one only."""
    if isinstance(item, list):
        return all(one is subscription for delivery in item for one in delivery.subscriptions)
    return isinstance(item, PartitionsStarted) and item.subscription is subscription


def _is_denied(name: str, item: StreamItem) -> bool:
    return isinstance(item, SubscriptionDenied) and item.name == name
