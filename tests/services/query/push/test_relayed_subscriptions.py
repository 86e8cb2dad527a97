"""Whatever is wished, taken back and moved, heard or not: what was said adds up to what is wished, and little waits."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.query.push.filter import Filter
from services.query.push.relayed_subscriptions import RelayedSubscriptions
from services.query.push.subscription import Subscription
from tests.services.query.push.null_sink import Nowhere

STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["add", "drop"]), st.integers(0, 3)),
        st.tuples(st.just("resume"), st.integers(0, 3), st.integers(0, 3)),
        st.tuples(st.just("say")),
        st.tuples(st.just("anew")),
    ),
    max_size=60,
)
ALL = dict.fromkeys(range(4))


def subscription(*, current: bool = False) -> Subscription:
    return Subscription("a", Filter("flights", None, "key-"), Nowhere(), current=current, most=10)


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
def test_what_was_said_is_what_is_wished(steps: list[tuple[Any, ...]]) -> None:
    wishes, heard, ones = RelayedSubscriptions(lambda _: ALL), Heard(), [subscription() for _ in range(4)]
    for what, *which in steps:
        if what == "anew":
            wishes.start_anew()
            heard = Heard()
        elif what == "say":
            if (message := wishes.next()) is not None:
                heard.hear(message)
        elif what == "resume":
            wishes.resume(ones[which[0]], which[1])
        else:
            (wishes.add if what == "add" else wishes.drop)(ones[which[0]])
        assert wishes.waiting <= len(wishes) + len(heard.told)
    while (message := wishes.next()) is not None:
        heard.hear(message)
    assert len(heard.told) == len(wishes)
    assert len(wishes.named(heard.told)) == len(wishes)


def test_nothing_piles_up_while_nobody_listens() -> None:
    wishes, lasting = RelayedSubscriptions(lambda _: ALL), subscription()
    wishes.add(lasting)
    for number in range(1000):
        passing = subscription()
        wishes.add(passing)
        wishes.resume(lasting, number % 4)
        wishes.drop(passing)
    assert wishes.waiting == 1


def test_what_is_said_is_what_is_so_when_it_is_said() -> None:
    since: dict[int, int | None] = {0: 5}
    wishes, one = RelayedSubscriptions(lambda _: since), subscription()
    wishes.add(one)
    assert wishes.next() == {
        "type": "subscribe",
        "id": "1",
        "state": "flights",
        "prefix": "key-",
        "where": {},
        "current": False,
        "partitions": {"0": 5},
    }
    for partition in (1, 2):
        wishes.resume(one, partition)
    since |= {1: 7}  # and the other has moved on again, before it could be said
    assert wishes.next() == {"type": "resume", "id": "1", "partitions": {"1": 7}}
    wishes.resume(one, 2)
    assert wishes.next() is None


def test_a_subscription_is_settled_once_all_that_was_said_of_it_is_answered() -> None:
    wishes, one = RelayedSubscriptions(lambda _: ALL), subscription()
    wishes.add(one)
    assert wishes.settled() == []
    wishes.next()
    assert wishes.settled() == []
    wishes.answered("1")
    assert wishes.settled() == [one]
    wishes.resume(one, 1)
    assert wishes.settled() == []
    wishes.next()
    wishes.answered(None)
    assert wishes.settled() == []
    wishes.answered("1")
    assert wishes.settled() == [one]
