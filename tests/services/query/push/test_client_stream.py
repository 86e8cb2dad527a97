"""The items of one client: their order, and withdrawal."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from services.query.lookup.authentication import ANONYMOUS
from services.query.lookup.problems import Problem
from services.query.push.client_stream import ClientStream
from services.query.push.filter import SubscriptionFilter
from services.query.push.notification import Notification, NotificationKind
from services.query.push.send_queue import SendQueue
from services.query.push.stream_items import SubscriptionDenied
from services.query.push.subscription import Subscription

if TYPE_CHECKING:
    from services.query.push.store_scanner import StoreScanner

ENDED = Problem("not_yours", "The token does not reach so far any more")


@pytest.fixture
def stream() -> ClientStream:
    return ClientStream(
        ANONYMOUS, cast("StoreScanner", None), SendQueue(10_000, 4 * 1024 * 1024, lambda: 0.0), lambda _: None
    )


def subscription(stream: ClientStream, name: str) -> Subscription:
    found = Subscription(name, SubscriptionFilter("flights", "a"), stream, current=True, limit=10)
    stream.add(found)
    return found


def test_an_ended_subscription_receives_nothing(stream: ClientStream) -> None:
    one, other = subscription(stream, "one"), subscription(stream, "other")
    notification = Notification(NotificationKind.STATE, "flights", "a", 0.0)
    for each in (one, other):
        stream.start(each, {0: 7})
        stream.put_first(each, [notification])
    stream.withdraw(one)
    assert stream.next_item() == (other, {0: 7})
    assert stream.next_item() == [(notification, [other])]
    assert stream.next_item() is None


def test_a_new_subscription_drops_the_denial_of_an_earlier_one(stream: ClientStream) -> None:
    for name in ("one", "other"):
        stream.deny(name, ENDED)
    subscription(stream, "one")
    assert stream.next_item() == SubscriptionDenied("other", ENDED)
    assert stream.next_item() is None
