"""What goes to one client, in the order in which it goes."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from services.query.push.send_queue import Delivery, SendQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from services.query.http.client_writer import ClientWriter
    from services.query.lookup.authentication import Principal
    from services.query.lookup.problems import Problem
    from services.query.push.notification import Notification
    from services.query.push.send_queue import ClientLag
    from services.query.push.store_scanner import StoreScan, StoreScanner
    from services.query.push.subscription import Subscription

BATCH_BYTES = 32 * 1024
"""About how much is written at a time: what waits longer can still be replaced by something later."""


class ProgressMark(NamedTuple):
    """How far the client is behind. `complete`: all that was known before has gone to it."""

    lag: ClientLag
    complete: bool


class StreamReset(NamedTuple):
    """The client was so slow that changes are lost to it: it has to read anew."""


class InitialStateSent(NamedTuple):
    """All that the subscription was to be told first has gone to the client: the keys of these partitions."""

    subscription: Subscription
    partitions: Collection[int]


class PartitionsStarted(NamedTuple):
    """The subscription is told of these partitions what comes after the offsets: another instance goes on there."""

    subscription: Subscription
    reached: dict[int, int]


class SubscriptionDenied(NamedTuple):
    """The client may not be told of its subscription of this name any more."""

    name: str
    problem: Problem


class StreamRefused(NamedTuple):
    """The client may be told nothing more: this is the last that it gets."""

    problem: Problem


class CommandResponse(NamedTuple):
    """An answer to what the client said."""

    message: bytes


ControlItem = (
    ProgressMark
    | StreamReset
    | InitialStateSent
    | PartitionsStarted
    | SubscriptionDenied
    | StreamRefused
    | CommandResponse
)
StreamItem = list[Delivery["Subscription"]] | ControlItem


class ClientStream:
    """The items for one client, who is `who`. Pages are read as fast as it takes them.

    `touch` is told when something was put; whoever told of changes lets the streams that were touched `go` then.
    """

    def __init__(
        self,
        who: Principal,
        reader: StoreScanner,
        mailbox: SendQueue[Subscription],
        touch: Callable[[ClientStream], None],
    ) -> None:
        self.who = who
        self.subscriptions: dict[str, Subscription] = {}
        """Those of the client, by the names that it gave them."""
        self.mailbox = mailbox
        self._reader = reader
        self._touch = touch
        self._direct: Callable[[], None] | None = None
        self._first: deque[StreamItem] = deque()
        self._readings: deque[StoreScan] = deque()
        self._read: deque[tuple[int, InitialStateSent]] = deque()
        self._marked = False
        self._refused: StreamRefused | None = None
        self._ended = False
        self._woken = asyncio.Event()
        self._taken = asyncio.Event()

    def put(self, subscription: Subscription, notice: Notification) -> None:
        """Let a notice go, or a later one of its key instead."""
        self.mailbox.put(subscription, notice)
        self._touch(self)

    def put_first(self, subscription: Subscription, notices: Iterable[Notification]) -> None:
        """Let each of these go before all else."""
        self._first.extend([Delivery(one, [subscription])] for one in notices)
        self._woken.set()

    def say(self, message: bytes) -> None:
        """Let this answer go before all else."""
        self._first.append(CommandResponse(message))
        self._woken.set()

    def begin(self, subscription: Subscription, reached: dict[int, int]) -> None:
        """Let it be said, before all else, after which offsets it is told."""
        self._first.append(PartitionsStarted(subscription, reached))
        self._woken.set()

    def read(self, reading: StoreScan) -> None:
        """Let these pages go."""
        self._readings.append(reading)
        self._woken.set()

    def lose(self) -> None:
        """Let the client be told to read anew."""
        self.mailbox.spill()
        self._touch(self)

    def mark(self) -> None:
        """Let a mark go, even before what waits."""
        self._marked = True
        self._woken.set()

    def withdraw(self, subscription: Subscription) -> None:
        """Nothing more goes to this subscription."""
        self.mailbox.withdraw(subscription)
        self._first = deque(one for one in self._first if not _is_for(subscription, one))
        self._readings = deque(one for one in self._readings if one.subscription is not subscription)
        self._read = deque(one for one in self._read if one[1].subscription is not subscription)

    def add(self, subscription: Subscription) -> None:
        """A subscription, for which its name stands from now on: what was denied before under that name is over."""
        self.subscriptions[subscription.name] = subscription
        self._first = deque(one for one in self._first if not _is_denied(subscription.name, one))

    def deny(self, name: str, problem: Problem) -> None:
        """Let the client be told that its subscription of this name has ended, and why."""
        self._first.append(SubscriptionDenied(name, problem))
        self._woken.set()

    def refuse(self, problem: Problem) -> None:
        """Let the client be told this, and nothing more, not even what waits."""
        self._refused = StreamRefused(problem)
        self._woken.set()

    def cut_off(self, problem: Problem) -> None:
        """Drop what waits at once, and refuse the client."""
        self.refuse(problem)
        self.mailbox.spill()

    @property
    def refused(self) -> Problem | None:
        """Why the client was told, or is to be told, that it gets nothing more."""
        return None if self._refused is None else self._refused.problem

    def end(self) -> None:
        """Nothing more goes to the client."""
        self._ended = True
        self._woken.set()
        self._taken.set()

    async def heard(self, most: int) -> None:
        """Wait while more than so many answers wait to go."""
        while len(self._first) > most and not self._ended:
            self._taken.clear()
            await self._taken.wait()

    async def flow(self, outlet: ClientWriter, written: Callable[[StreamItem], bytes]) -> None:
        """Write all that goes to the client until the end, as `written` writes it. Raises ConnectionError."""
        while not self._ended:
            self._woken.clear()
            self._pump(outlet, written)
            if self._waits:
                await outlet.flush()
            else:
                self._direct = partial(self._pump, outlet, written)
                await self._woken.wait()
                self._direct = None

    def go(self) -> None:
        """Write what was put since the last call: at once, if that is all there is to do and the client takes it."""
        if self._direct is None or self._first or self._readings or self._read:
            self._woken.set()
            return
        try:
            self._direct()
        except ConnectionError:
            self.end()
        if self._waits:
            self._woken.set()

    @property
    def _waits(self) -> bool:
        """Whether there is something to write."""
        if self._ended or self._refused:
            return not self._ended
        return bool(self.mailbox or self.mailbox.spilled or self._first or self._marked or self._readings or self._read)

    def _pump(self, outlet: ClientWriter, written: Callable[[StreamItem], bytes]) -> None:
        """Write until there is nothing more, or the client has enough for now."""
        while self._waits and outlet.free:
            item = self.next_item()
            if item is None:  # a page of which nothing is told: others have their turn before the next
                return
            outlet.write(written(item))

    def next_item(self) -> StreamItem | None:
        """What goes next; None if that is nothing now."""
        if self._refused:
            self.end()
            return self._refused
        if self.mailbox.spilled:
            return self._reset()
        if self._first:
            self._taken.set()
            return self._first.popleft()
        if self._marked:
            self._marked = False
            return ProgressMark(self.mailbox.lag(), not self.mailbox and not self._readings)
        if self._read and self._read[0][0] < self.mailbox.oldest:
            return self._read.popleft()[1]
        if self._readings and self.mailbox.size < BATCH_BYTES:
            self._page(self._readings[0])
        return self.mailbox.take(BATCH_BYTES) or None

    def _page(self, reading: StoreScan) -> None:
        """What the last page put into the mailbox has gone once its newest slot has."""
        if not reading.done:
            self._reader.page(reading)
        if reading.done and self._readings and self._readings[0] is reading:
            self._readings.popleft()
            if reading.first:
                self._read.append((self.mailbox.newest, InitialStateSent(reading.subscription, reading.partitions)))

    def _reset(self) -> StreamReset:
        """Presently, what comes is told again; what was read until now does not count."""
        self._readings.clear()
        self._read.clear()
        self.mailbox.reopen()
        for subscription in self.subscriptions.values():
            subscription.start_anew()
        return StreamReset()


def _is_for(subscription: Subscription, item: StreamItem) -> bool:
    """Whether this is the subscription's: letters that go first are for one alone."""
    if isinstance(item, list):
        return all(one is subscription for letter in item for one in letter.subscriptions)
    return isinstance(item, PartitionsStarted) and item.subscription is subscription


def _is_denied(name: str, item: StreamItem) -> bool:
    return isinstance(item, SubscriptionDenied) and item.name == name
