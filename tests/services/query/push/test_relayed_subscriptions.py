"""The commands to another instance result in the subscriptions, in any order of changes, and few are pending."""

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
        st.tuples(st.just("reconnect")),
    ),
    max_size=60,
)
ALL = dict.fromkeys(range(4))


def subscription(*, current: bool = False) -> Subscription:
    return Subscription("a", SubscriptionFilter("flights", None, "key-"), NullSink(), current=current, limit=10)


class PeerState:
    """The subscriptions at another instance, which rejects a name twice and an unknown name."""

    def __init__(self) -> None:
        self.partitions: dict[str, set[str]] = {}

    def receive(self, message: dict[str, Any]) -> None:
        name = message["id"]
        assert (name in self.partitions) == (message["type"] != "subscribe")
        if message["type"] == "unsubscribe":
            del self.partitions[name]
        else:
            self.partitions.setdefault(name, set()).update(message["partitions"])


@given(steps=STEPS)
def test_sent_commands_result_in_the_subscriptions(steps: list[tuple[Any, ...]]) -> None:
    relayed, peer, ones = RelayedSubscriptions(lambda _: ALL), PeerState(), [subscription() for _ in range(4)]
    for what, *which in steps:
        if what == "reconnect":
            relayed.reset()
            peer = PeerState()
        elif what == "send":
            if (message := relayed.next_command()) is not None:
                peer.receive(message)
        elif what == "resume":
            relayed.resume(ones[which[0]], which[1])
        else:
            (relayed.add if what == "add" else relayed.remove)(ones[which[0]])
        assert relayed.pending <= len(relayed) + len(peer.partitions)
    while (message := relayed.next_command()) is not None:
        peer.receive(message)
    assert len(peer.partitions) == len(relayed)
    assert len(relayed.named(peer.partitions)) == len(relayed)


def test_pending_commands_are_bounded_while_disconnected() -> None:
    relayed, kept = RelayedSubscriptions(lambda _: ALL), subscription()
    relayed.add(kept)
    for number in range(1000):
        temporary = subscription()
        relayed.add(temporary)
        relayed.resume(kept, number % 4)
        relayed.remove(temporary)
    assert relayed.pending == 1


def test_a_command_has_the_offsets_at_the_time_of_sending() -> None:
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
    since |= {1: 7}  # the delivered offset advances before the command is sent
    assert relayed.next_command() == {"type": "resume", "id": "1", "partitions": {"1": 7}}
    relayed.resume(one, 2)
    assert relayed.next_command() is None


def test_a_subscription_is_settled_once_all_its_commands_are_acknowledged() -> None:
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
