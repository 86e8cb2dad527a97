"""A queue stores the latest notification of each key, within its limits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.query.push.notification import Notification, NotificationKind
from services.query.push.send_queue import SendQueue

MUCH = 10**9


class ManualClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def a_notice(key: str, version: int = 1, *, size: int = 1, at: float = 0.0) -> Notification:
    return Notification(NotificationKind.STATE, "s", key, at, order=(0, 0, version), tag=str(version), size=size)


def a_queue(keys: int = 100, size: int = MUCH) -> SendQueue[str]:
    return SendQueue(keys, size, ManualClock())


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["one", "two"]), st.booleans()), max_size=60))
def test_each_subscription_gets_the_latest_of_each_key_and_nothing_older(steps: list[tuple[str, str, bool]]) -> None:
    queue = a_queue()
    put: dict[tuple[str, str], int] = {}
    got: dict[tuple[str, str], list[int]] = {}
    for version, (key, subscription, take) in enumerate(steps):
        queue.put(subscription, a_notice(key, version))
        put[key, subscription] = version
        for delivery in queue.take(1) if take else ():
            for name in delivery.subscriptions:
                got.setdefault((delivery.notification.key, name), []).append(int(delivery.notification.tag))
    for delivery in queue.take(MUCH):
        for name in delivery.subscriptions:
            got.setdefault((delivery.notification.key, name), []).append(int(delivery.notification.tag))
    assert {place: versions[-1] for place, versions in got.items()} == put
    assert all(versions == sorted(set(versions)) for versions in got.values())
    assert queue.conflated + sum(map(len, got.values())) == len(steps)


def test_one_delivery_serves_all_subscriptions_of_a_client() -> None:
    queue, notice = a_queue(), a_notice("a")
    for name in ("one", "two"):
        queue.put(name, notice)
    assert [(delivery.notification, delivery.subscriptions) for delivery in queue.take(MUCH)] == [
        (notice, ["one", "two"])
    ]


def test_the_lag_counts_from_the_first_of_the_merged_changes() -> None:
    clock = ManualClock()
    queue: SendQueue[str] = SendQueue(100, MUCH, clock)
    queue.put("one", a_notice("a", 1, at=clock()))
    clock.now += 2.0
    queue.put("one", a_notice("a", 2, at=clock()))
    assert queue.lag() == (1, 1, 2000)
    queue.take(MUCH)
    assert queue.lag() == (0, 1, 0)


def test_beyond_the_key_limit_the_queue_is_dropped_until_reopened() -> None:
    queue = a_queue(keys=3)
    for key in "abcd":
        queue.put("one", a_notice(key))
    assert (queue.has_overflowed, len(queue), queue.take(MUCH)) == (True, 0, [])
    queue.put("one", a_notice("e"))
    assert (len(queue), queue.conflated) == (0, 5)
    queue.reopen()
    queue.put("one", a_notice("f"))
    assert [delivery.notification.key for delivery in queue.take(MUCH)] == ["f"]


def test_beyond_the_byte_limit_too_but_one_value_always_fits() -> None:
    queue = a_queue(size=1000)
    queue.put("one", a_notice("a", size=5000))
    assert not queue.has_overflowed
    queue.put("one", a_notice("a", size=400))
    queue.put("one", a_notice("b", size=600))
    assert not queue.has_overflowed
    queue.put("one", a_notice("c", size=1))
    assert queue.has_overflowed


def test_take_returns_about_the_requested_bytes_oldest_first() -> None:
    queue = a_queue()
    for key in "abc":
        queue.put("one", a_notice(key, size=400))
    assert [delivery.notification.key for delivery in queue.take(500)] == ["a", "b"]
    assert (queue.oldest, queue.newest) == (3, 3)


def test_withdrawing_a_subscription_drops_its_deliveries() -> None:
    queue, notice = a_queue(size=1000), a_notice("a", size=900)
    for name in ("one", "two"):
        queue.put(name, notice)
    queue.put("one", a_notice("b", size=90))
    queue.withdraw("one")
    assert [(delivery.notification.key, delivery.subscriptions) for delivery in queue.take(MUCH)] == [("a", ["two"])]
    queue.put("one", a_notice("c", size=999))
    queue.put("one", a_notice("d", size=1))
    assert not queue.has_overflowed
