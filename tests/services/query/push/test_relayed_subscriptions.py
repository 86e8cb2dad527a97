"""Commands to another instance add up to the subscriptions, in any order of changes, and few are pending."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.query.push.filter import SubscriptionFilter
from services.query.push.relayed_subscriptions import RelayedSubscriptions
from services.query.push.subscription import Subscription
from tests.services.query.push.null_sink import NullSink

STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["add", "drop"]), st.integers(0, 3)),
        st.tuples(st.just("resume"), st.integers(0, 3), st.integers(0, 3)),
        st.tuples(st.just("send")),
        st.tuples(st.just("anew")),
    ),
    max_size=60,
)
ALL = dict.fromkeys(range(4))


def subscription(*, current: bool = False) -> Subscription:
    return Subscription("a", SubscriptionFilter("flights", None, "key-"), NullSink(), current=current, limit=10)


class Heard:
    """What another instance knows of subscriptions: it refuses a name twice, or one that it does not know."""

    def __init__(self) -> None:
        self.told: dict[str, set[str]] = {}

    def hear(self, message: dict[str, Any]) -> None:
        name = message["id"]
        assert (name in self.told) == (message["type"] != "subscribe")
        if message["type"] == "unsubscribe":
            del self.told[name]
        else:
            self.told.setdefault(name, set()).update(message["partitions"])


@given(steps=STEPS)
def test_sent_commands_add_up_to_the_subscriptions(steps: list[tuple[Any, ...]]) -> None:
    relayed, heard, ones = RelayedSubscriptions(lambda _: ALL), Heard(), [subscription() for _ in range(4)]
    for what, *which in steps:
        if what == "anew":
            relayed.reset()
            heard = Heard()
        elif what == "send":
            if (message := relayed.next_command()) is not None:
                heard.hear(message)
        elif what == "resume":
            relayed.resume(ones[which[0]], which[1])
        else:
            (relayed.add if what == "add" else relayed.remove)(ones[which[0]])
        assert relayed.pending <= len(relayed) + len(heard.told)
    while (message := relayed.next_command()) is not None:
        heard.hear(message)
    assert len(heard.told) == len(relayed)
    assert len(relayed.named(heard.told)) == len(relayed)


def test_pending_commands_are_bounded_while_disconnected() -> None:
    relayed, lasting = RelayedSubscriptions(lambda _: ALL), subscription()
    relayed.add(lasting)
    for number in range(1000):
        passing = subscription()
        relayed.add(passing)
        relayed.resume(lasting, number % 4)
        relayed.remove(passing)
    assert relayed.pending == 1


def test_a_command_has_the_offsets_of_the_moment_it_is_sent() -> None:
    since: dict[int, int | None] = {0: 5}
    relayed, one = RelayedSubscriptions(lambda _: since), subscription()
    relayed.add(one)
    assert relayed.next_command() == {
        "type": "subscribe",
        "id": "1",
        "state": "flights",
        "prefix": "key-",
        "where": {},
        "current": False,
        "partitions": {"0": 5},
    }
    for partition in (1, 2):
        relayed.resume(one, partition)
    since |= {1: 7}  # and the other has moved on again, before it could be said
    assert relayed.next_command() == {"type": "resume", "id": "1", "partitions": {"1": 7}}
    relayed.resume(one, 2)
    assert relayed.next_command() is None


def test_a_subscription_is_settled_once_all_that_was_said_of_it_is_answered() -> None:
    relayed, one = RelayedSubscriptions(lambda _: ALL), subscription()
    relayed.add(one)
    assert relayed.settled() == []
    relayed.next_command()
    assert relayed.settled() == []
    relayed.acknowledge("1")
    assert relayed.settled() == [one]
    relayed.resume(one, 1)
    assert relayed.settled() == []
    relayed.next_command()
    relayed.acknowledge(None)
    assert relayed.settled() == []
    relayed.acknowledge("1")
    assert relayed.settled() == [one]
