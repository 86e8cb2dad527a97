"""The stream to one client: the names that wait for it, read when the client takes bytes."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Protocol

from services.query.lookup.problems import Problem
from services.query.push.event import CHANGED, REMOVED, STATE, EventKind
from services.query.push.stream_items import (
    BATCH_BYTES,
    Delivery,
    EarlierVersions,
    InitialStateSent,
    ProgressMark,
    StreamRefused,
    StreamReset,
    deliver,
    denies,
    is_earlier,
    remove_subscription,
    size_of,
)
from services.query.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from services.query.lookup.authentication import Principal
    from services.query.push.event import Answer, Present, Reason
    from services.query.push.names import Cause, ClientLag, Name, WaitingNames
    from services.query.push.reader import NameReader
    from services.query.push.scanner import StoreScanner
    from services.query.push.stream_items import StreamItem
    from services.query.push.subscription import StoreScan, Subscription
    from services.query.push.upstream import Upstreams

log = logging.getLogger(__name__)

NAMES_MAX = 100
"""The largest number of names that are read at once, and that wait when a scan reads more."""


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


class Stream:
    """The items for one client, made as fast as the client takes them.

    `on_added` is called when a name was added; after a batch of changes its receiver calls `flush`.
    """

    def __init__(
        self,
        principal: Principal,
        names: WaitingNames[Subscription],
        reader: NameReader,
        scanner: StoreScanner,
        on_added: Callable[[Stream], None],
    ) -> None:
        self.principal = principal
        self.names = names
        self.subscriptions: dict[str, Subscription] = {}
        """The client's subscriptions by name."""
        self.upstreams: Upstreams | None = None
        """Its watches at other instances. Another instance has none here: it watches the others itself."""
        self._reader = reader
        self._scanner = scanner
        self._on_added = on_added
        self._write_at_once: Callable[[], None] | None = None
        self._first: deque[StreamItem | EarlierVersions] = deque()
        self._copied: deque[StreamItem] = deque()
        self._copied_bytes = 0
        self._is_turn_of_names = False
        self._scans: deque[StoreScan] = deque()
        self._initial: deque[tuple[int, InitialStateSent]] = deque()
        self._not_renewed: set[Subscription] = set()
        """The subscriptions of which a reset has dropped changes, until the client subscribes again."""
        self._is_mark_due = False
        self._refused: StreamRefused | None = None
        self._ended = False
        self._woken = asyncio.Event()
        self._taken = asyncio.Event()

    def of(self, state: str) -> list[Subscription]:
        """The subscriptions to a state."""
        return [subscription for subscription in self.subscriptions.values() if subscription.filter.state == state]

    def add(self, subscription: Subscription, name: Name, cause: Cause) -> None:
        """Add a name that may have changed for the subscription."""
        self.names.add(subscription, name, cause)
        self._on_added(self)

    def scan(self, scan: StoreScan) -> None:
        """Add what the scan finds, as fast as the client takes it."""
        self._scans.append(scan)
        self._woken.set()

    def finish_initial(self, subscription: Subscription, partitions: set[int]) -> None:
        """Report, after the names that wait now, that the present values of these partitions were sent."""
        self._initial.append((self.names.newest, InitialStateSent(subscription, partitions)))
        self._woken.set()

    def send_first(self, *items: StreamItem | EarlierVersions) -> None:
        """Send these before everything that waits."""
        self._first.extend(items)
        self._woken.set()

    def copy(self, item: Delivery | InitialStateSent) -> None:
        """Send an item of another instance. `wait_for_room` bounds them."""
        copied: StreamItem = [item] if isinstance(item, Delivery) else item
        self._copied.append(copied)
        self._copied_bytes += size_of(copied)
        self._on_added(self)

    def send_gone(self, subscription: Subscription, answer: Answer, at: float) -> None:
        """See `NameReceiver.send_gone`."""
        self.copy(Delivery(answer, [subscription.name], at))

    def send_copies_first(self) -> None:
        """Send what was copied before names of the same partition, which this instance serves from now on."""
        self.send_first(*self._copied)
        self._set_copied(())

    def mark(self) -> None:
        """Send a mark, before everything that waits."""
        self._is_mark_due = True
        self._woken.set()

    def reset(self) -> None:
        """Drop all names: changes were lost, and the client must read again."""
        self.names.overflow()
        self._on_added(self)

    def subscribe(self, subscription: Subscription) -> None:
        """Add a subscription. The denial of an earlier one of this name is dropped."""
        self.subscriptions[subscription.name] = subscription
        self._first = deque(item for item in self._first if not denies(subscription.name, item))

    def withdraw(self, subscription: Subscription) -> None:
        """Remove everything that waits for the subscription."""
        self.names.withdraw(subscription)
        self._not_renewed.discard(subscription)
        self._first = deque(item for item in self._first if remove_subscription(subscription, item))
        self._set_copied(item for item in self._copied if remove_subscription(subscription, item))
        self._scans = deque(scan for scan in self._scans if scan.subscription is not subscription)
        self._initial = deque(item for item in self._initial if item[1].subscription is not subscription)

    def pause(self, subscription: Subscription, partition: int, fed: int) -> None:
        """Send nothing more of a partition that this instance does not serve any more: another one continues.

        That one sends no earlier versions, and finds no removal that waits here: a client of many keys reads again.
        """
        is_removal_lost = subscription.filter.key is None and self.names.has_removal(subscription, partition)
        subscription.pause(partition, fed, self.names.withdraw(subscription, partition))
        for _, item in self._initial:
            if item.subscription is subscription:
                item.partitions.discard(partition)
        self._first = deque(item for item in self._first if not is_earlier(subscription, item))
        if is_removal_lost:
            self.reset()

    def refuse(self, problem: Problem) -> None:
        """End the stream with this problem. Nothing that waits is sent."""
        self._refused = StreamRefused(problem)
        self._woken.set()

    def cut_off(self, problem: Problem) -> None:
        """Drop all names at once, and end the stream with this problem."""
        self.refuse(problem)
        self.names.overflow()

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

    @property
    def has_room(self) -> bool:
        """Whether the client has taken most of what was copied from another instance, or is gone."""
        return self._copied_bytes <= BATCH_BYTES or self._ended

    async def wait_for_room(self) -> None:
        """Wait while the client has not taken what was copied from another instance."""
        while not self.has_room:
            self._taken.clear()
            await self._taken.wait()

    def lag(self) -> ClientLag:
        """How far the client is behind now, here and at the other instances."""
        return self.names.lag() if self.upstreams is None else self.upstreams.lag(self.names.lag())

    async def run(self, writer: StreamWriter, encode: Callable[[StreamItem], bytes]) -> None:
        """Write items until the end. Raises ConnectionError."""
        while not self._ended:
            self._woken.clear()
            self._write(writer, encode)
            if self._has_items:
                await writer.drain()
            else:
                self._write_at_once = partial(self._write, writer, encode)
                await self._woken.wait()
                self._write_at_once = None

    def flush(self) -> None:
        """Write what waits: at once, if there is nothing else to send and the client takes it."""
        if self._write_at_once is None or self._first or self._scans or self._initial:
            self._woken.set()
            return
        try:
            self._write_at_once()
        except ConnectionError:
            self.end()
        if self._has_items:
            self._woken.set()

    def next_item(self) -> StreamItem | None:
        """The next item to send; None if there is none now."""
        if self._refused:
            self.end()
            return self._refused
        if self.names.has_overflowed:
            return self._reset()
        self._taken.set()
        if self._first:
            return self._take_first()
        if self._is_mark_due:
            self._is_mark_due = False
            return ProgressMark(self.lag(), self._is_complete)
        return self._next_in_turn()

    def _take_first(self) -> StreamItem | None:
        first = self._first[0]
        if not isinstance(first, EarlierVersions):
            self._first.popleft()
            return first
        found = next(first.deliveries, None)
        if found is None:
            self._first.popleft()
            return self.next_item()
        return found

    @property
    def _is_complete(self) -> bool:
        """Whether the client was sent everything that this instance has read, also what a reset has dropped."""
        return not (self.names.waiting or self._scans or self._copied or self._not_renewed)

    def _next_in_turn(self) -> StreamItem | None:
        """An item of this instance and one of the others in turns: none of them holds the others back."""
        self._is_turn_of_names = not self._is_turn_of_names or not self._copied
        if not self._is_turn_of_names:
            return self._take_copied()
        found = self._next_of_names()
        return self._take_copied() if found is None and self._copied else found

    def _next_of_names(self) -> StreamItem | None:
        """The next deliveries of this instance, or the end of the present values."""
        if self._initial and self._initial[0][0] < self.names.oldest:
            return self._finish_initial(self._initial.popleft()[1])
        if self._scans and len(self.names.waiting) < NAMES_MAX and self.names.room > 0:
            self._read_page(self._scans[0])
        return self._read_names() or None

    @property
    def _has_items(self) -> bool:
        if self._ended or self._refused:
            return not self._ended
        names = self.names
        here = names.waiting or self._scans or self._initial or names.has_overflowed
        return bool(here or self._first or self._is_mark_due or self._copied)

    def _write(self, writer: StreamWriter, encode: Callable[[StreamItem], bytes]) -> None:
        """Write until there is nothing more, or the client has enough for now. An unexpected error ends it alone."""
        try:
            while self._has_items and writer.is_writable:
                item = self.next_item()
                if item is None:  # names without an event, or an empty page: other streams have their turn
                    return
                writer.write(encode(item))
        except (ConnectionError, StoreError):
            raise
        except Exception:
            log.exception("a watching connection failed and ends")
            self.cut_off(Problem("failed", "Reconnect: the service failed to send a change"))

    def _read_names(self) -> list[Delivery]:
        """Read the oldest names, and return about as many deliveries as are written at once."""
        found: list[Delivery] = []
        size, names = 0, self.names
        for _ in range(min(NAMES_MAX, len(names.waiting))):
            name, waiting = names.pop()
            deliveries: list[Delivery] = []
            for subscription, reason in waiting.reasons.items():
                for answer in self._answers(name, subscription, reason):
                    size += len(answer.body)
                    deliver(answer, subscription, waiting.first.at, deliveries)
            found += deliveries
            if size >= BATCH_BYTES:
                break
        return found

    def _answers(self, name: Name, subscription: Subscription, reason: Reason) -> list[Answer]:
        """The answers that the subscription receives now. A removed window is followed by the newest one."""
        choice = subscription.filter.window
        present = self._reader.read(name, choice)
        if reason is not REMOVED or name.window_start is None or choice != "newest":
            return self._answer(name, subscription, reason, present)
        is_removed = self._reader.read(name, "all") is None
        if is_removed and subscription.has_left(name.key):
            earlier = self._answer(name, subscription, CHANGED, present)
            return [self._reader.gone(EventKind.REMOVED, name, None), *earlier] if earlier else []
        answers: list[Answer] = []
        if not subscription.has_window(name.key, name.window_start):
            reason = CHANGED
        elif is_removed:
            answers = self._answer(name, subscription, reason, None)
            reason = CHANGED
        return answers + self._answer(name, subscription, reason, present)

    def _answer(self, name: Name, subscription: Subscription, reason: Reason, present: Present | None) -> list[Answer]:
        if reason is REMOVED and present is not None and subscription.is_ahead(name.key, present):
            removed = self._answer(name, subscription, REMOVED, None)
            return removed + self._answer(name, subscription, CHANGED, present)
        kind = subscription.next_event(name, present, reason, self._reader.oldest_window(name.state))
        if kind is STATE and present is not None:
            return [self._reader.answer(name, present)]
        return [] if kind is None else [self._reader.gone(kind, name, present)]

    def _set_copied(self, items: Iterable[StreamItem]) -> None:
        self._copied = deque(items)
        self._copied_bytes = sum(map(size_of, self._copied))
        self._taken.set()

    def _take_copied(self) -> StreamItem:
        item = self._copied.popleft()
        self._copied_bytes -= size_of(item)
        return item

    def _read_page(self, scan: StoreScan) -> None:
        """Add the names of a page, as many as may wait. The last page was sent once the newest name of now was."""
        scan.limit = min(scan.limit, self.names.room)
        self._scanner.add_page(scan)
        if scan.is_done and self._scans and self._scans[0] is scan:
            self._scans.popleft()
            if scan.is_initial:
                self.finish_initial(scan.subscription, set(scan.partitions))

    def _finish_initial(self, item: InitialStateSent) -> InitialStateSent | None:
        item.subscription.complete(item.partitions)
        return item if item.partitions else None

    def _reset(self) -> StreamReset:
        """Accept names again. What was delivered until now does not count."""
        self._scans.clear()
        self._initial.clear()
        self._set_copied(())
        self.names.reopen()
        self._not_renewed = set(self.subscriptions.values())
        for subscription in self.subscriptions.values():
            subscription.reset()
        return StreamReset()
