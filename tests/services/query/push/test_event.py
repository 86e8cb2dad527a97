"""What a client receives about one key, against a plain model of a client and of the history of the key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.query.push.event import CHANGED, REMOVED, REQUESTED, EventKind, Present, event, expired_order
from services.query.push.filter import SubscriptionFilter
from services.query.push.filter_index import FilterMatches
from services.query.push.names import Name
from services.query.push.subscription import Subscription
from services.query.store import Entry

if TYPE_CHECKING:
    from services.query.push.event import Reason

KEY = SubscriptionFilter("s", "k")
PREFIX = SubscriptionFilter("s")
LANDED = SubscriptionFilter("s", where=(("status", "landed"),))
SILENT = SubscriptionFilter("s", silent_for=5)
FILTERS = [KEY, PREFIX, LANDED]
NAME = Name("s", "k")


def present(start: int, version: int, status: str = "landed", *, is_closed: bool = False, time: int = 0) -> Present:
    entry = Entry(start, 0, version, time, 0, 0, orjson.dumps({"status": status}))
    return Present(entry, is_closed=is_closed)


class Store:
    """One key: versions of growing windows, tombstones, and a watermark."""

    def __init__(self) -> None:
        self.version, self.start, self.oldest = 0, 0, 0
        self.present: Present | None = None

    def record(self, status: str, is_next_window: bool) -> Reason:  # noqa: FBT001  # drawn
        self.start += is_next_window
        self.version = 1 if is_next_window or self.present is None else self.version + 1
        if self.start >= self.oldest:
            self.present = present(self.start, self.version, status)
        return CHANGED

    def remove(self) -> Reason:
        self.present = None
        return REMOVED

    def expire(self) -> Reason:
        self.oldest = self.start + 1
        return CHANGED

    def value(self, wanted: SubscriptionFilter) -> tuple[int, int] | None:
        """Return window and version of the present value, if a client of this filter should have it."""
        found = self.present
        if found is None or found.entry.window_start < self.oldest or not wanted.matches(found.record):
            return None
        return found.entry.window_start, found.entry.version


class Client:
    """A subscription, and what its client has: the client only follows events."""

    def __init__(self, wanted: SubscriptionFilter) -> None:
        self.subscription = Subscription("x", wanted, cast("Any", None), current=True, limit=10)
        if wanted.is_conditional:
            self.subscription.matches = FilterMatches()
        self.has: tuple[int, int] | None = None
        self.may_go_back = False
        self.events: list[EventKind] = []

    def read(self, store: Store, reason: Reason) -> None:
        """Read the name as a stream does."""
        self.may_go_back |= reason is REMOVED
        kind = self.subscription.next_event(NAME, store.present, reason, store.oldest)
        if kind is EventKind.STATE:
            assert store.present is not None
            value = store.present.entry.window_start, store.present.entry.version
            assert self.may_go_back or self.has is None or value > self.has, "older, or the same again"
            self.has, self.may_go_back = value, False
        elif kind is not None:
            assert self.has is not None or self.subscription.filter.receives_all, "a key that the client never had"
            self.has = None
        self.events += [] if kind is None else [kind]


STEPS = st.one_of(
    st.tuples(st.just("record"), st.sampled_from(["landed", "flying"]), st.booleans()),
    st.tuples(st.just("remove")),
    st.tuples(st.just("expire")),
)


@settings(max_examples=500)
@given(st.sampled_from(FILTERS), st.lists(st.tuples(STEPS, st.booleans()), max_size=30))
def test_a_client_has_the_present_value_however_many_changes_it_conflates(
    wanted: SubscriptionFilter, steps: list[tuple[tuple[Any, ...], bool]]
) -> None:
    """Between two reads the greatest reason of the changes counts, as among waiting names."""
    store, client = Store(), Client(wanted)
    waiting: Reason | None = None
    for (name, *arguments), is_read in steps:
        reason: Reason = getattr(store, name)(*arguments)
        waiting = reason if waiting is None else max(waiting, reason)
        if is_read:
            client.read(store, waiting)
            waiting = None
    if waiting is not None:
        client.read(store, waiting)
    assert client.has == store.value(wanted)
    count = len(client.events)
    client.read(store, CHANGED)
    assert len(client.events) == count, "nothing has changed"


@pytest.mark.parametrize(
    ("wanted", "delivered", "found", "reason", "expected"),
    [
        (KEY, None, None, REQUESTED, EventKind.NEVER_SEEN),
        (KEY, None, None, CHANGED, None),
        (PREFIX, None, None, REQUESTED, None),
        (KEY, (9, 0, 1), None, REQUESTED, EventKind.REMOVED),
        (KEY, (9, 0, 1), None, CHANGED, None),
        (KEY, None, None, REMOVED, EventKind.REMOVED),
        (LANDED, None, None, REMOVED, None),
        (LANDED, (9, 0, 1), None, REMOVED, EventKind.REMOVED),
        (KEY, None, present(9, 1), CHANGED, EventKind.STATE),
        (KEY, (9, 0, 1), present(9, 1), CHANGED, None),
        (KEY, (9, 0, 1), present(9, 1, is_closed=True), CHANGED, EventKind.STATE),
        (KEY, (9, 0, 1, 1), present(9, 1, is_closed=True), CHANGED, None),
        (KEY, (9, 0, 2), present(9, 1), CHANGED, None),
        (KEY, (9, 0, 2), present(9, 2), REMOVED, None),
        (KEY, (9, 0, 2), present(9, 1), REMOVED, EventKind.STATE),
        (LANDED, (9, 0, 2), present(9, 1, "flying"), REMOVED, EventKind.LEFT),
        (LANDED, (9, 0, 2), present(9, 2, "flying"), REMOVED, EventKind.LEFT),
        (LANDED, (9, 0, 1), present(9, 2, "flying"), CHANGED, EventKind.LEFT),
        (LANDED, None, present(9, 2, "flying"), CHANGED, None),
        (LANDED, None, present(9, 2, "flying"), REQUESTED, EventKind.LEFT),
        (KEY, None, present(3, 1), REQUESTED, EventKind.EXPIRED),
        (PREFIX, None, present(3, 1), CHANGED, None),
        (KEY, (3, 0, 1), present(3, 1), CHANGED, EventKind.EXPIRED),
        (KEY, (3, 0, 1), None, CHANGED, EventKind.EXPIRED),
        (KEY, expired_order(3), present(3, 2), CHANGED, None),
        (KEY, expired_order(3), None, REQUESTED, None),
        (KEY, expired_order(3), present(9, 1), CHANGED, EventKind.STATE),
        (SILENT, None, present(9, 1, time=6_999), CHANGED, EventKind.STATE),
        (SILENT, None, present(9, 1, time=7_000), CHANGED, None),
        (SILENT, (9, 0, 1), present(9, 2, time=7_000), CHANGED, EventKind.LEFT),
    ],
)
def test_each_case(  # the facts of a decision
    wanted: SubscriptionFilter,
    delivered: tuple[int, ...] | None,
    found: Present | None,
    reason: Reason,
    expected: EventKind | None,
) -> None:
    """Windows before 5 have expired, and keys without a record since second 7 are silent."""
    assert event(wanted, delivered, found, reason, 5, 7) is expected


def test_another_instance_receives_again_what_it_requests() -> None:
    relayed = Subscription("x", PREFIX, cast("Any", None), current=True, limit=10, is_relayed=True)
    for _ in range(2):
        assert relayed.next_event(NAME, present(9, 1), REQUESTED, 0) is EventKind.STATE
    assert relayed.next_event(NAME, present(9, 1), CHANGED, 0) is None
