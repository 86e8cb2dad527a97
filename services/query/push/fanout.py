"""Fans changes out to the subscriptions that match them."""

from __future__ import annotations

from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from contracts.wire.partition import partition as partition_of
from services.query.lookup.decision import iso
from services.query.lookup.version_reference import closed_tag, delivered_order
from services.query.push.filter import RecordFields
from services.query.push.filter_index import FilterIndex, FilterMatches
from services.query.push.notification import Notification, NotificationKind, gone_window_body
from services.query.push.routing_table import LOCAL
from services.query.store.index import FIRST_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from contracts.model.named_state import NamedState
    from services.query.push.routing_table import RoutingTable
    from services.query.push.state_windows import StateWindows
    from services.query.push.subscription import ClosedWindows, Subscription
    from services.query.store import Change, Entry

NO_WINDOWS: Mapping[str, StateWindows] = MappingProxyType({})


class ChangeFanout:
    """Takes changes in the event loop, a batch at a time once readers see it, and notifies matching subscriptions.

    It skips partitions that other instances serve. `answer` returns the JSON that a GET of the key returns, for an
    entry and whether its window is closed, `present` the entry that readers see now. `windows` has those of windowed
    states, where a change is of one window.
    """

    def __init__(  # noqa: PLR0913, PLR0917  # one caller, which makes all of them
        self,
        states: Mapping[str, NamedState],
        routing: RoutingTable,
        answer: Callable[[str, str, Entry, bool], bytes],
        clock: Callable[[], float],
        present: Callable[[str, str], Entry | None],
        windows: Mapping[str, StateWindows] = NO_WINDOWS,
    ) -> None:
        self._states = states
        self._routing = routing
        self._answer = answer
        self._clock = clock
        self._present = present
        self._windows = windows
        self._indexes: dict[str, FilterIndex[Subscription]] = {name: FilterIndex() for name in states}
        self._matches: dict[str, FilterMatches[Subscription]] = {name: FilterMatches() for name in states}
        self._silent_until: dict[str, int] = {}
        """The latest `silent_until` by state: no key with a later record is silent for any subscription."""
        self._positions: dict[tuple[str, int], int] = {}

    def changed(self, changes: Iterable[Change]) -> None:
        """Notify the subscriptions that match these changes."""
        if not self._routing.has_local():
            return  # a rebuild is millions of changes without a subscription
        at = self._clock()
        for state, key, entry, window_start in changes:
            number = self.partition(state, key) if entry is None else entry.partition
            if self._routing.route(state, number) != LOCAL:
                continue
            if entry is None and window_start is not None:
                self._notify_window_removed(state, key, at, window_start)
            elif entry is None:
                self._notify_removed(state, key, at)
            else:
                self._positions[state, number] = entry.offset + 1
                self._notify_entry(state, key, entry, at)

    def value_notification(self, state: str, key: str, entry: Entry, at: float | None = None) -> Notification:
        """The notification of an entry, known since `at`; by default since now."""
        is_closed = self.is_closed(state, entry)
        return Notification(
            NotificationKind.STATE,
            state,
            key,
            self._clock() if at is None else at,
            order=delivered_order(entry.order, is_closed=is_closed),
            tag=closed_tag(entry.tag) if is_closed else entry.tag,
            partition=entry.partition,
            offset=entry.offset,
            size=len(entry.value),
            window_start=entry.window_start if state in self._windows else None,
            make=partial(self._answer, state, key, entry, is_closed),
        )

    def is_closed(self, state: str, entry: Entry) -> bool:
        """Whether the entry is of a closed window."""
        windows = self._windows.get(state)
        return windows is not None and not windows.is_open(entry.window_start)

    def gone_notification(
        self,
        kind: NotificationKind,
        state: str,
        key: str,
        entry: Entry | None = None,
        window_start: int | None = None,
    ) -> Notification:
        """The notification of a key without a value. `entry` is the one that shows it, if there is one.

        In a windowed state it is of the window of the entry, or of that with this start, or of the key as a whole.
        """
        partition, offset = (-1, -1) if entry is None else (entry.partition, entry.offset)
        if state not in self._windows:
            return Notification(kind, state, key, self._clock(), partition=partition, offset=offset)
        start = window_start if entry is None else entry.window_start
        body = gone_window_body(state, key, None if start is None else iso(start))
        return Notification(
            kind, state, key, self._clock(), partition=partition, offset=offset, window_start=start, make=lambda: body
        )

    def add(self, subscription: Subscription) -> None:
        """Notify the subscription from now on."""
        state, key = subscription.filter[:2]
        self._indexes[state].add(subscription.filter, subscription)
        subscription.partition = None if key is None else self.partition(state, key)
        if subscription.filter.is_conditional:
            subscription.matches = self._matches[state]

    def remove(self, subscription: Subscription) -> None:
        """Do not notify the subscription any more."""
        self._indexes[subscription.filter.state].remove(subscription.filter, subscription)
        subscription.reset()

    def subscriptions(self, state: str) -> list[Subscription]:
        """All subscriptions to a state."""
        return list(self._indexes[state])

    def set_silent_until(self, subscription: Subscription, until: int) -> None:
        """Set the second before which the last records of silent keys are, for a subscription with `silent_for`."""
        subscription.silent_until, state = until, subscription.filter.state
        self._silent_until[state] = max(until, self._silent_until.get(state, FIRST_SECOND))

    def silent_subscriptions(self, state: str) -> list[Subscription]:
        """All subscriptions to silent keys of a state."""
        return list(self._indexes[state].silent)

    def pop_closed(self) -> Iterator[tuple[str, ClosedWindows]]:
        """The windows that have closed since the last call, of the states with subscriptions."""
        for state, windows in self._windows.items():
            closed = windows.pop_closed()
            if closed is not None and len(self._indexes[state]):
                yield state, closed

    def count(self, state: str) -> int:
        """The number of subscriptions to a state."""
        return len(self._indexes[state])

    def partition(self, state: str, key: str) -> int:
        """The partition of the key."""
        return partition_of(key.encode(), self._states[state].partitions)

    def positions(self, state: str) -> dict[int, int]:
        """The offset after the last change, by partition that this instance serves."""
        known = (
            (local_partition, self._positions.get((state, local_partition)))
            for local_partition in self._routing.local_partitions(state)
        )
        return {one: offset for one, offset in known if offset is not None}

    def forget(self, state: str, partition: int) -> None:
        """Drop offsets of a partition that is read from its beginning again."""
        self._positions.pop((state, partition), None)
        for subscription in self._indexes[state]:
            subscription.delivered_offsets.pop(partition, None)
            scan = subscription.scans.get(partition)
            if scan is not None and scan.since is not None:
                del subscription.scans[partition]

    def _notify_entry(self, state: str, key: str, entry: Entry, at: float) -> None:
        """All subscriptions share one notification. The record is parsed only if a subscription filters by fields."""
        index = self._indexes[state]
        if not len(index):
            return
        is_concerned = self._concerned(state, key, entry.window_start)
        notification: Notification | None = None
        for subscription in index.by_key(key):
            if is_concerned(subscription):
                notification = notification or self.value_notification(state, key, entry, at)
                subscription.deliver(notification)
        if index.has_filters:
            self._notify_filters(index, notification or self.value_notification(state, key, entry, at), entry)

    def _concerned(self, state: str, key: str, window_start: int) -> Callable[[Subscription], bool]:
        """Whether a subscription receives changes of this window of the key: in other states, all of them."""
        windows = self._windows.get(state)
        if windows is None:
            return _always
        is_newest = cache(partial(windows.is_newest, key, window_start))
        return lambda one: windows.is_chosen(one.filter.window, window_start, is_newest)

    def _matched(self, state: str, key: str, window_start: int) -> list[Subscription]:
        """The subscriptions whose filter the client last saw the key match, or this window of it."""
        matches = self._matches[state]
        return [*matches.of(key), *(matches.of((key, window_start)) if state in self._windows else ())]

    def _notify_filters(self, index: FilterIndex[Subscription], notification: Notification, entry: Entry) -> None:
        state, key = notification.state, notification.key
        is_concerned = self._concerned(state, key, entry.window_start)
        record = RecordFields(entry.value)
        passed = dict.fromkeys(filter(is_concerned, index.by_fields(key, record)))
        if entry.event_time // 1000 < self._silent_until.get(state, FIRST_SECOND):
            silent = (one for one in index.silent if one.matches_entry(key, entry, record))
            passed |= dict.fromkeys(filter(is_concerned, silent))
        for subscription in passed:
            subscription.deliver(notification)
        before = filter(is_concerned, self._matched(state, key, entry.window_start))
        left = [one for one in before if one not in passed and not one.has_at_least(key, entry.order)]
        if left:
            gone = self.gone_notification(NotificationKind.LEFT, state, key, entry)
            for subscription in left:
                subscription.deliver_gone(gone)

    def _notify_removed(self, state: str, key: str, at: float) -> None:
        """Skips subscriptions that have read, from the store, that the key has reappeared."""
        notification, present = Notification(NotificationKind.REMOVED, state, key, at), self._present(state, key)
        for subscription in (*self._indexes[state].by_key(key), *self._matches[state].of(key)):
            if present is None or not subscription.has_version(key, present.order):
                subscription.deliver_gone(notification)

    def _notify_window_removed(self, state: str, key: str, at: float, window_start: int) -> None:
        """A subscription to the newest window learns of it if it was that one, and receives the one before it."""
        windows = self._windows[state]
        present, newest = windows.entry(key, window_start), self._present(state, key)
        notification = self.gone_notification(NotificationKind.REMOVED, state, key, window_start=window_start)
        notification.at = at
        subscriptions = (*self._indexes[state].by_key(key), *self._matched(state, key, window_start))
        for subscription in dict.fromkeys(subscriptions):
            was_newest = partial(subscription.has_window, key, window_start)
            if not windows.is_chosen(subscription.filter.window, window_start, was_newest):
                continue
            if present is None or not subscription.has_version(key, present.order):
                subscription.deliver_gone(notification)
                if (
                    newest is not None
                    and subscription.filter.key is not None
                    and subscription.matches_entry(key, newest, RecordFields(newest.value))
                ):
                    subscription.deliver(self.value_notification(state, key, newest, at))


def _always(_: Subscription) -> bool:
    return True
