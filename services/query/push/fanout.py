"""Tells subscribers what has changed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from contracts.wire.partition import partition as partition_of
from services.query.push.filter import RecordFields
from services.query.push.filter_index import FilterIndex
from services.query.push.filter_matches import FilterMatches
from services.query.push.notification import Notification, NotificationKind
from services.query.push.routing_table import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from contracts.model.named_state import NamedState
    from services.query.push.routing_table import RoutingTable
    from services.query.push.subscription import Subscription
    from services.query.store.entry import Change, Entry


class ChangeFanout:
    """Is told Changes in the event loop, a batch at a time when readers can see it, and knows who wants to know.

    What this instance does not answer for is not told here. `answer` gives the JSON that a read of a state's key gives,
    `present` what readers see of the key now.
    """

    def __init__(
        self,
        states: Mapping[str, NamedState],
        places: RoutingTable,
        answer: Callable[[str, str, Entry], bytes],
        clock: Callable[[], float],
        present: Callable[[str, str], Entry | None],
    ) -> None:
        self._states = states
        self._places = places
        self._answer = answer
        self._clock = clock
        self._present = present
        self._indexes: dict[str, FilterIndex[Subscription]] = {name: FilterIndex() for name in states}
        self._holders = {name: FilterMatches() for name in states}
        self._positions: dict[tuple[str, int], int] = {}

    def changed(self, changes: Iterable[Change]) -> None:
        """Let what has changed be told to those whom it concerns."""
        if not self._places.answers():
            return  # a rebuild is millions of changes that concern nobody
        at = self._clock()
        for state, key, entry in changes:
            number = self.partition(state, key) if entry is None else entry.partition
            if self._places.place(state, number) != LOCAL:
                continue
            if entry is None:
                self._tell_removed(state, key, at)
            else:
                self._positions[state, number] = entry.offset + 1
                self._tell_entry(state, key, entry, at)

    def notice(self, state: str, key: str, entry: Entry, at: float | None = None) -> Notification:
        """What is told of an entry that was known at this time; now, unless it is said."""
        return Notification(
            NotificationKind.STATE,
            state,
            key,
            self._clock() if at is None else at,
            order=entry.order,
            tag=entry.tag,
            partition=entry.partition,
            offset=entry.offset,
            size=len(entry.value),
            make=partial(self._answer, state, key, entry),
        )

    def gone(self, kind: NotificationKind, state: str, key: str, entry: Entry | None = None) -> Notification:
        """What is told of a key that is not there any more, or was never; `entry` is what says so."""
        partition, offset = (-1, -1) if entry is None else (entry.partition, entry.offset)
        return Notification(kind, state, key, self._clock(), partition=partition, offset=offset)

    def add(self, subscription: Subscription) -> None:
        """From now on it is told of changes."""
        state, key = subscription.interest[:2]
        self._indexes[state].add(subscription.interest, subscription)
        subscription.partition = None if key is None else self.partition(state, key)
        if subscription.interest.where:
            subscription.holders = self._holders[state]

    def remove(self, subscription: Subscription) -> None:
        """From now on it is not told of anything."""
        self._indexes[subscription.interest.state].remove(subscription.interest, subscription)
        subscription.start_anew()

    def subscriptions(self, state: str) -> list[Subscription]:
        """All of a state."""
        return list(self._indexes[state])

    def watched(self, state: str) -> int:
        """How many subscriptions a state has."""
        return len(self._indexes[state])

    def partition(self, state: str, key: str) -> int:
        """The partition that the key is in."""
        return partition_of(key.encode(), self._states[state].partitions)

    def positions(self, state: str) -> dict[int, int]:
        """The offset after the last change told, by partition, of what this instance answers for."""
        known = ((one, self._positions.get((state, one))) for one in self._places.here(state))
        return {one: offset for one, offset in known if offset is not None}

    def forget(self, state: str, partition: int) -> None:
        """The partition is read anew: its offsets say nothing any more."""
        self._positions.pop((state, partition), None)
        for subscription in self._indexes[state]:
            subscription.reached.pop(partition, None)
            reading = subscription.readings.get(partition)
            if reading is not None and reading.since is not None:
                del subscription.readings[partition]

    def _tell_entry(self, state: str, key: str, entry: Entry, at: float) -> None:
        """One notice serves all, so that it is encoded once; the record is parsed only if somebody filters."""
        index = self._indexes[state]
        notice: Notification | None = None
        for subscription in index.named(key):
            notice = notice or self.notice(state, key, entry, at)
            subscription.tell(notice)
        if index.filters:
            self._tell_filters(index, notice or self.notice(state, key, entry, at), entry)

    def _tell_filters(self, index: FilterIndex[Subscription], notice: Notification, entry: Entry) -> None:
        passed = dict.fromkeys(index.filtered(notice.key, RecordFields(entry.value)))
        for subscription in passed:
            subscription.tell(notice)
        holders = self._holders[notice.state].of(notice.key)
        left = [one for one in holders if one not in passed and not one.has_since(notice.key, entry.order)]
        if left:
            gone = self.gone(NotificationKind.LEFT, notice.state, notice.key, entry)
            for subscription in left:
                subscription.tell_gone(gone)

    def _tell_removed(self, state: str, key: str, at: float) -> None:
        """Not to who was told already that the key has come again: by a read."""
        notice, again = Notification(NotificationKind.REMOVED, state, key, at), self._present(state, key)
        for subscription in (*self._indexes[state].named(key), *self._holders[state].of(key)):
            if again is None or not subscription.has(key, again.order):
                subscription.tell_gone(notice)
