"""The feed: from changes of the stores to names that wait at the streams of matching subscriptions."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from services.query.push.event import CHANGED, REMOVED
from services.query.push.filter import RecordFields
from services.query.push.filter_index import FilterIndex, FilterMatches
from services.query.push.names import Cause, Name
from services.query.push.routing_table import LOCAL
from services.query.store.index import FIRST_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from services.query.push.event import Reason
    from services.query.push.reader import NameReader
    from services.query.push.routing_table import RoutingTable
    from services.query.push.subscription import ClosedWindows, Subscription
    from services.query.store import Change, Entry


class ChangeFeed:
    """Takes changes in the event loop, a batch at a time once readers see it. A change of another key costs a lookup.

    It skips partitions that other instances serve.
    """

    def __init__(
        self, states: Iterable[str], routing: RoutingTable, reader: NameReader, clock: Callable[[], float]
    ) -> None:
        self._routing = routing
        self._reader = reader
        self._clock = clock
        self._indexes: dict[str, FilterIndex[Subscription]] = {name: FilterIndex() for name in states}
        self._matches: dict[str, FilterMatches[Subscription]] = {name: FilterMatches() for name in self._indexes}
        self._silent_until: dict[str, int] = {}
        """The latest `silent_until` by state: no key with a later record is silent for any subscription."""
        self._positions: dict[tuple[str, int], int] = {}

    def changed(self, changes: Iterable[Change]) -> None:
        """Add the names of these changes to the streams."""
        if not self._routing.has_local():
            return  # a rebuild is millions of changes without a subscription
        at = self._clock()
        fed: dict[Name, Entry | None] = {}
        for change in changes:
            state, key, entry, window_start = change
            if entry is not None and state in self._reader.windows:
                window_start = entry.window_start
            self._reader.forget(state, key, window_start)
            has_subscriptions = len(self._indexes[state]) > 0
            if entry is None and not has_subscriptions:
                continue
            _, number = self.place(change)
            if self._routing.route(state, number) != LOCAL:
                continue
            if entry is not None:
                self._positions[state, number] = entry.offset + 1
            if has_subscriptions:
                self._add(change, window_start, number, at, fed)
        self._cache(fed)

    def place(self, change: Change) -> tuple[str, int]:
        """The state and the partition of a change. A record may be in another partition than that of its key's hash."""
        state, key, entry, _ = change
        return state, self._routing.partition(state, key) if entry is None else entry.partition

    def add(self, subscription: Subscription) -> None:
        """Add a subscription: it receives names from now on."""
        state = subscription.filter.state
        self._indexes[state].add(subscription.filter, subscription)
        if subscription.filter.is_conditional:
            subscription.matches = self._matches[state]

    def remove(self, subscription: Subscription) -> None:
        """Remove a subscription."""
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
        for state, windows in self._reader.windows.items():
            closed = windows.pop_closed()
            if closed is not None and len(self._indexes[state]):
                yield state, closed

    def count(self, state: str) -> int:
        """The number of subscriptions to a state."""
        return len(self._indexes[state])

    def offset(self, state: str, partition: int) -> int:
        """The offset of the last change of the partition; -1 if there was none."""
        return self._positions.get((state, partition), 0) - 1

    def positions(self, state: str) -> dict[int, int]:
        """The offset after the last change, by partition that this instance serves."""
        local = self._routing.local_partitions(state)
        return {one: self._positions[state, one] for one in local if (state, one) in self._positions}

    def forget(self, state: str, partition: int, *, is_other_topic: bool) -> None:
        """Drop the offset of a partition that is read from its beginning again, and what an other topic ends."""
        self._positions.pop((state, partition), None)
        for subscription in self._indexes[state]:
            subscription.read_again(partition, is_other_topic=is_other_topic)

    def _cache(self, fed: Mapping[Name, Entry | None]) -> None:
        """Cache the last entries of a batch for the streams, where readers cannot have seen later ones."""
        is_caught_up = cache(
            lambda state, number: self.offset(state, number) == self._reader.stored_offset(state, number)
        )
        for name, entry in fed.items():
            if entry is not None and name.window_start is None and is_caught_up(name.state, entry.partition):
                self._reader.cache(name, entry)

    def _add(
        self, change: Change, window_start: int | None, number: int, at: float, fed: dict[Name, Entry | None]
    ) -> None:
        """Add the name of a change to the streams; record it in `fed` if a client waits for it."""
        state, key, entry, _ = change
        reason = REMOVED if entry is None else CHANGED
        is_chosen = self._chosen(state, key, window_start, reason)
        found = [one for one in self._candidates(change, window_start) if one.wants(number) and is_chosen(one)]
        name = Name(state, key, window_start)
        if not found:
            fed.pop(name, None)  # an earlier change of the batch, which readers do not see any more
            return
        cause = Cause(number, self.offset(state, number), at, reason)
        fed[name] = entry
        for subscription in found:
            subscription.stream.add(subscription, name, cause)

    def _candidates(self, change: Change, window_start: int | None) -> Iterable[Subscription]:
        """The subscriptions whose filter the key matches now, or matched when its client last received it."""
        state, key, entry, _ = change
        index, matched = self._indexes[state], self._matches[state]
        if not index.has_filters:
            return index.by_key(key)
        found = dict.fromkeys(index.by_key(key))
        found |= dict.fromkeys(matched.of(key))
        if window_start is not None:
            found |= dict.fromkeys(matched.of((key, window_start)))
        present = entry
        if entry is None and window_start is not None:  # the window before the removed one may match
            present = self._reader.windows[state].newest_since_removal(key, window_start)
        if present is not None:
            found |= dict.fromkeys(index.by_fields(key, RecordFields(present.value)))
            if present.event_time // 1000 < self._silent_until.get(state, FIRST_SECOND):
                found |= dict.fromkeys(one for one in index.silent if one.filter.matches_key(key))
        return found

    def _chosen(self, state: str, key: str, window_start: int | None, reason: Reason) -> Callable[[Subscription], bool]:
        """Whether a subscription receives changes of this window of the key: in other states, all of them."""
        windows = self._reader.windows.get(state)
        if windows is None or window_start is None:
            return _always
        is_newest = cache(partial(windows.is_newest, key, window_start)) if reason is CHANGED else lambda: True
        return lambda one: windows.is_chosen(one.filter.window, window_start, is_newest)


def _always(_: Subscription) -> bool:
    return True
