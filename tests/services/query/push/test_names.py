"""The waiting names of a client: each once, oldest first, within the limits of the client and of all clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hypothesis import given
from hypothesis import strategies as st

from services.query.push.event import CHANGED, REMOVED, REQUESTED
from services.query.push.names import NAME_BYTES, Cause, Name, NamesBudget, WaitingNames

if TYPE_CHECKING:
    from services.query.push.event import Reason
    from services.query.push.subscription import Subscription

MUCH = 10**9
ONE, TWO = (cast("Subscription", name) for name in ("one", "two"))


class ManualClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def waiting_names(limit: int = 100, budget: NamesBudget | None = None) -> WaitingNames[Subscription]:
    return WaitingNames(limit, ManualClock(), budget or NamesBudget(MUCH, lambda: None))


def add(  # noqa: PLR0913  # all but two have defaults
    names: WaitingNames[Subscription],
    key: str,
    subscription: Subscription = ONE,
    reason: Reason = CHANGED,
    *,
    partition: int = 0,
    offset: int = 0,
    at: float = 0.0,
) -> None:
    names.add(subscription, Name("s", key), Cause(partition, offset, at, reason))


def keys(names: WaitingNames[Subscription]) -> list[str]:
    return [name.key for name in names.waiting]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([ONE, TWO]), st.booleans()), max_size=60))
def test_each_change_is_taken_or_conflated(steps: list[tuple[str, Subscription, bool]]) -> None:
    budget = NamesBudget(MUCH, lambda: None)
    names, taken, last = waiting_names(budget=budget), 0, 0
    for key, subscription, take in steps:
        add(names, key, subscription)
        if take:
            _, waiting = names.pop()
            assert waiting.number > last, "the oldest first"
            taken, last = taken + len(waiting.reasons), waiting.number
    assert budget.used == NAME_BYTES * len(names.waiting)
    while names.waiting:
        taken += len(names.pop()[1].reasons)
    assert (names.conflated + taken, budget.used) == (len(steps), 0)


def test_of_several_reasons_the_greatest_counts() -> None:
    names = waiting_names()
    for reason in (CHANGED, REMOVED, REQUESTED):
        add(names, "a", ONE, reason)
    add(names, "a", TWO, REQUESTED)
    assert names.pop()[1].reasons == {ONE: REMOVED, TWO: REQUESTED}


def test_the_lag_counts_from_the_first_of_the_conflated_changes() -> None:
    clock = ManualClock()
    names: WaitingNames[Subscription] = WaitingNames(100, clock, NamesBudget(MUCH, lambda: None))
    add(names, "a", at=0.0)
    clock.now += 2.0
    add(names, "a", at=2.0)
    assert names.lag() == (1, 1, 2000)
    names.pop()
    assert names.lag() == (0, 1, 0)


def test_beyond_the_limit_all_names_are_dropped_until_reopened() -> None:
    budget = NamesBudget(MUCH, lambda: None)
    names = waiting_names(3, budget)
    for key in "abcd":
        add(names, key)
    assert (names.has_overflowed, keys(names), budget.used) == (True, [], 0)
    add(names, "e")
    assert (keys(names), names.conflated) == ([], 5)
    names.reopen()
    add(names, "f")
    assert keys(names) == ["f"]


def test_a_withdrawn_subscription_leaves_the_names_of_others() -> None:
    names = waiting_names()
    for number, key in enumerate("abc"):
        add(names, key, ONE, partition=number % 2, offset=10 - number)
    add(names, "a", TWO, partition=0, offset=20)
    assert names.withdraw(ONE, 0) == 8
    assert (keys(names), names.withdraw(ONE, 0)) == (["a", "b"], None)
    assert names.withdraw(ONE) == 9
    assert names.pop()[1].reasons == {TWO: CHANGED}
    assert names.oldest == names.newest + 1


def test_the_budget_reports_each_time_that_it_is_exceeded() -> None:
    exceeded: list[int] = []
    budget = NamesBudget(2 * NAME_BYTES, lambda: exceeded.append(budget.used))
    for key in "abc":
        add(waiting_names(budget=budget), key)
    assert exceeded == [3 * NAME_BYTES]
