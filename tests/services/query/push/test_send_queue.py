"""A mailbox holds of each key the latest, and no more than so much."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.query.push.notification import Notification, NotificationKind
from services.query.push.send_queue import SendQueue

MUCH = 10**9


class Seconds:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def a_notice(key: str, version: int = 1, *, size: int = 1, at: float = 0.0) -> Notification:
    return Notification(NotificationKind.STATE, "s", key, at, order=(0, 0, version), tag=str(version), size=size)


def a_mailbox(keys: int = 100, size: int = MUCH) -> SendQueue[str]:
    return SendQueue(keys, size, Seconds())


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["one", "two"]), st.booleans()), max_size=60))
def test_each_subscription_gets_the_latest_of_each_key_and_nothing_older(steps: list[tuple[str, str, bool]]) -> None:
    mailbox = a_mailbox()
    put: dict[tuple[str, str], int] = {}
    got: dict[tuple[str, str], list[int]] = {}
    for version, (key, subscription, take) in enumerate(steps):
        mailbox.put(subscription, a_notice(key, version))
        put[key, subscription] = version
        for letter in mailbox.take(1) if take else ():
            for name in letter.subscriptions:
                got.setdefault((letter.notice.key, name), []).append(int(letter.notice.tag))
    for letter in mailbox.take(MUCH):
        for name in letter.subscriptions:
            got.setdefault((letter.notice.key, name), []).append(int(letter.notice.tag))
    assert {place: versions[-1] for place, versions in got.items()} == put
    assert all(versions == sorted(set(versions)) for versions in got.values())
    assert mailbox.conflated + sum(map(len, got.values())) == len(steps)


def test_one_letter_serves_all_subscriptions_of_a_client() -> None:
    mailbox, notice = a_mailbox(), a_notice("a")
    for name in ("one", "two"):
        mailbox.put(name, notice)
    assert [(letter.notice, letter.subscriptions) for letter in mailbox.take(MUCH)] == [(notice, ["one", "two"])]


def test_the_lag_says_how_old_the_oldest_is_although_a_later_one_took_its_place() -> None:
    clock = Seconds()
    mailbox: SendQueue[str] = SendQueue(100, MUCH, clock)
    mailbox.put("one", a_notice("a", 1, at=clock()))
    clock.now += 2.0
    mailbox.put("one", a_notice("a", 2, at=clock()))
    assert mailbox.lag() == (1, 1, 2000)
    mailbox.take(MUCH)
    assert mailbox.lag() == (0, 1, 0)


def test_over_the_keys_it_holds_nothing_until_the_client_has_been_told() -> None:
    mailbox = a_mailbox(keys=3)
    for key in "abcd":
        mailbox.put("one", a_notice(key))
    assert (mailbox.spilled, len(mailbox), mailbox.take(MUCH)) == (True, 0, [])
    mailbox.put("one", a_notice("e"))
    assert (len(mailbox), mailbox.conflated) == (0, 5)
    mailbox.reopen()
    mailbox.put("one", a_notice("f"))
    assert [letter.notice.key for letter in mailbox.take(MUCH)] == ["f"]


def test_over_the_bytes_too_but_one_value_always_fits() -> None:
    mailbox = a_mailbox(size=1000)
    mailbox.put("one", a_notice("a", size=5000))
    assert not mailbox.spilled
    mailbox.put("one", a_notice("a", size=400))
    mailbox.put("one", a_notice("b", size=600))
    assert not mailbox.spilled
    mailbox.put("one", a_notice("c", size=1))
    assert mailbox.spilled


def test_what_is_taken_is_about_as_much_as_asked_and_the_oldest_first() -> None:
    mailbox = a_mailbox()
    for key in "abc":
        mailbox.put("one", a_notice(key, size=400))
    assert [letter.notice.key for letter in mailbox.take(500)] == ["a", "b"]
    assert (mailbox.oldest, mailbox.newest) == (3, 3)


def test_what_waits_for_a_subscription_that_ends_is_dropped() -> None:
    mailbox, notice = a_mailbox(size=1000), a_notice("a", size=900)
    for name in ("one", "two"):
        mailbox.put(name, notice)
    mailbox.put("one", a_notice("b", size=90))
    mailbox.withdraw("one")
    assert [(letter.notice.key, letter.subscriptions) for letter in mailbox.take(MUCH)] == [("a", ["two"])]
    mailbox.put("one", a_notice("c", size=999))
    mailbox.put("one", a_notice("d", size=1))
    assert not mailbox.spilled
