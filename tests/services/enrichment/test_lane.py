"""Which requests begin: no second call for what is known, and nothing lost whatever is done again."""

from __future__ import annotations

from asyncio import Task
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING
from unittest.mock import Mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from contracts import Budget
from contracts.planning.fingerprint import fingerprint
from contracts.wire import LARGEST_COUNT
from services.enrichment.lane import Lane
from services.enrichment.pressure import Pressure
from services.enrichment.source import Record
from tests.services.enrichment.calls.calling import fleet
from tests.services.enrichment.fleet import QUICK, STALE, START, answer, app, application, snapshot

if TYPE_CHECKING:
    from datetime import datetime

    from contracts import Application
    from contracts.planning.request import Request
    from contracts.wire import Snapshot
    from services.enrichment.work import Work

HOUR = timedelta(hours=1)
OWNER = app.by_name["owner"]


def lane() -> Lane:
    return Lane(1000, HOUR, lambda: 0.0, Pressure(1000, 1000, 1000))


def begun(one: Lane, request: Request, offset: int = 0) -> Work:
    """The work of a request, as if its call were under way."""
    work = one.begin(Record(0, offset, b"d", b"{}", 0), request, START)
    assert work
    work.task = Mock(Task)
    return work


def asked(one: Lane, enrichment: str, of: Snapshot, now: datetime = START) -> list[Work]:
    """The work that a snapshot calls for."""
    due = [request for request in one.due(app, of, now).begin if request.enrichment == enrichment]
    one.offsets.take(of.version, len(due))
    return [begun(one, request, of.version) for request in due]


def owners(one: Lane, of: Snapshot) -> list[Work]:
    return asked(one, "owner", of)


def test_a_version_is_looked_at_once_and_an_earlier_one_never() -> None:
    one = lane()
    assert [one.passed(snapshot(version)) for version in (2, 2, 1, 3)] == [False, True, True, False]
    assert not one.passed(snapshot(1, device="d2"))


def test_only_the_latest_version_that_was_seen_is_the_latest() -> None:
    one = lane()
    assert not one.is_latest(snapshot(1))
    for version in (1, 3):
        one.passed(snapshot(version))
    assert [one.is_latest(snapshot(version)) for version in (1, 2, 3, 4)] == [False, False, True, False]
    assert not one.is_latest(snapshot(3, device="d2"))


def test_no_second_call_for_what_is_under_way_or_answered() -> None:
    one = lane()
    (work,) = owners(one, snapshot(1))
    assert owners(one, snapshot(2)) == []
    one.end(work)
    assert owners(one, snapshot(3)) == []
    assert len(owners(one, snapshot(4, "P2"))) == 1


def test_inputs_that_come_back_are_asked_again_once_the_answer_was_superseded() -> None:
    one = lane()
    first, second = *owners(one, snapshot(1, "P1")), *owners(one, snapshot(2, "P2"))
    one.end(first)
    one.end(second)
    assert owners(one, snapshot(3, "P1")) == [], "the state does not show that P2's answer won"
    shown = answer(2, fingerprint(OWNER, {"plate": "P2"}), {"name": "x"})
    assert [work.request.version for work in owners(one, snapshot(4, "P1", owner=shown))] == [4]


def test_an_answer_that_wins_over_every_other_is_not_asked_against() -> None:
    one, forged = lane(), answer(LARGEST_COUNT, "forged", {"name": "x"})
    (work,) = owners(one, snapshot(1))
    one.end(work)
    assert [owners(one, snapshot(version, owner=forged)) for version in range(2, 9)] == [[]] * 7


def test_a_stale_answer_is_asked_for_again_and_only_once() -> None:
    one, late = lane(), START + 2 * STALE
    (first,) = asked(one, "quote", snapshot(1))
    one.end(first)
    old = answer(1, fingerprint(app.by_name["quote"], {"plate": "P1"}), {"price": 1.0})
    assert asked(one, "quote", snapshot(2, quote=old)) == []
    (again,) = asked(one, "quote", snapshot(3, quote=old), late)
    assert asked(one, "quote", snapshot(4, quote=old), late) == [], "under way"
    one.end(again)
    assert asked(one, "quote", snapshot(5, quote=old), late) == [], "answered, but the state does not show it yet"


class Replay(RuleBasedStateMachine):
    """A partition's log, read by one worker after the other, each from what was committed.

    Whatever the order of completions, revocations and re-assignments: what is before the committed position was
    answered or overtaken by what was, and a completion of a former assignment changes nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Snapshot] = []
        self.answered: set[tuple[object, ...]] = set()
        self.committed = 0
        self.under_way: list[Work] = []
        self.lane, self.next = lane(), 0

    @rule(device=st.sampled_from("ab"), plate=st.sampled_from("PQ"), again=st.booleans())
    def publish(self, device: str, plate: str, *, again: bool) -> None:
        """The job publishes a snapshot; after a crash, an earlier one again."""
        version = 1 + sum(one.device_id == device for one in self.log)
        past = [one for one in self.log if one.device_id == device]
        self.log.append(past[len(past) // 2] if again and past else snapshot(version, plate, device))

    @precondition(lambda self: self.next < len(self.log))
    @rule()
    def read(self) -> None:
        of, offset = self.log[self.next], self.next
        self.next += 1
        requests = [] if self.lane.passed(of) else self.lane.due(app, of, START)[0]
        self.lane.offsets.take(offset, len(requests))
        alike = {work.request.identity for work in self.under_way if work.lane is self.lane}
        assert not alike & {request.identity for request in requests}, "never two alike under way"
        self.under_way += [begun(self.lane, request, offset) for request in requests]

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        """One is answered, and overtakes those before it. What was given up in a former lane cannot be answered."""
        work = self.under_way.pop(data.draw(st.integers(0, len(self.under_way) - 1)))
        earlier = [
            one for one in self.under_way if line(one) == line(work) and one.request.version < work.request.version
        ]
        assert work.lane.overtake(work) == len(earlier)
        self.under_way = [one for one in self.under_way if one not in earlier]
        self.answered |= {one.request.identity for one in [*earlier, work]}
        work.lane.end(work)

    @rule()
    def commit(self) -> None:
        if self.lane.offsets.position is not None:
            self.committed = self.lane.offsets.position

    @rule()
    def come_back(self) -> None:
        """The partition goes away and comes back; what is under way may still complete, in the former lane."""
        self.lane, self.next = lane(), self.committed

    @rule()
    def crash(self) -> None:
        self.under_way.clear()
        self.come_back()

    @invariant()
    def what_is_committed_was_answered(self) -> None:
        called_for = {
            request.identity for of in self.log[: self.committed] for request in lane().due(app, of, START)[0]
        }
        assert called_for <= self.answered


def line(work: Work) -> tuple[object, ...]:
    """What is answered in order."""
    return work.lane, work.request.device_id, work.request.enrichment


TestReplay = Replay.TestCase
TestReplay.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


def test_a_budget_counts_what_is_under_way_and_tells_what_it_stopped() -> None:
    limited = application()
    limited.budget = Budget(requests=2)
    one = lane()
    for request in (first := one.due(limited, snapshot(1), START)).begin:
        begun(one, request)
    assert [(request.enrichment, request.spent) for request in first.begin] == [("owner", 1), ("quote", 1)]
    again = one.due(limited, snapshot(2), START)
    assert (again.begin, again.spared, again.stopped) == ([], 2, []), "what is under way is not asked anew"
    changed = one.due(limited, snapshot(3, "P2"), START)
    assert not changed.begin
    assert [request.enrichment for request in changed.stopped] == ["owner", "quote"]


def waiting(one: Lane, of: Application, seen: Snapshot) -> list[Work]:
    """The work of a snapshot whose calls do not begin yet."""
    due = one.due(of, seen, START)
    one.offsets.take(seen.version, len(due.begin))
    read = Record(0, seen.version, b"d", b"{}", 0)
    return [work for request in due.begin if (work := one.begin(read, request, START))]


def test_a_change_that_renews_what_waits_spends_nothing() -> None:
    limited, one = application(), lane()
    limited.budget = Budget(requests=3)
    owner, quote = waiting(one, limited, snapshot(1))
    for version in range(2, 9):
        assert waiting(one, limited, snapshot(version, f"P{version}")) == []
    assert [(work.request.inputs, work.request.spent) for work in (owner, quote)] == [({"plate": "P8"}, 1)] * 2
    one.start(owner, Mock(Task))
    (further,) = waiting(one, limited, snapshot(9, "P9"))
    assert (further.request.enrichment, further.request.spent) == ("owner", 2)
    assert quote.request.inputs == {"plate": "P9"}, "what waits is renewed before the rest is spent"
    one.start(further, Mock(Task))
    last = one.due(limited, snapshot(10, "P10"), START)
    assert [request.enrichment for request in last.begin] == ["quote"]
    assert [request.enrichment for request in last.stopped] == ["owner"]


def test_an_interval_does_not_keep_what_waits_from_the_latest_inputs() -> None:
    seldom = fleet(QUICK, enrichments=(replace(OWNER, at_most_every=HOUR), app.by_name["street"], app.by_name["quote"]))
    limited, one = seldom, lane()
    owner, _ = waiting(one, limited, snapshot(1))
    assert waiting(one, limited, snapshot(2, "P2")) == []
    assert owner.request.inputs == {"plate": "P2"}
    one.start(owner, Mock(Task))
    assert "owner" not in [request.enrichment for request in one.due(limited, snapshot(3, "P3"), START).begin]


def test_what_is_skipped_takes_the_place_of_what_waits_and_pays_back_what_that_cost() -> None:
    limited, one = application(), lane()
    limited.budget = Budget(requests=1)
    (work,) = waiting(one, limited, snapshot(1))
    one.offsets.take(2, 1)
    skip = one.begin(Record(0, 2, b"d", b"{}", 0), replace(work.request, version=2, skipped="no"), START)
    assert skip
    assert (work.over, skip.offsets) == (True, [2, 1])
    assert not one.may_begin(work), "its place was taken"
    one.start(skip, Mock(Task))
    one.end(skip)
    assert one.offsets.position == 3
    (again,) = waiting(one, limited, snapshot(3, "P2"))
    assert again.request.spent == 1


def test_what_is_let_go_pays_back_what_it_cost_and_waits_at_the_latest_offset_that_calls_for_it() -> None:
    limited, one = application(), lane()
    limited.budget = Budget(requests=2)
    first, second = snapshot(1), snapshot(2)
    assert not one.passed(first)
    owner, quote = waiting(one, limited, first)
    assert not one.passed(second)
    assert waiting(one, limited, second) == [], "renewed"
    assert [(work.request.version, work.request.spent) for work in (owner, quote)] == [(2, 1)] * 2
    for work in (owner, quote):
        one.let_go(work, "registry")
    assert (one.offsets.position, one.parked) == (2, {"registry": {2: 2}})
    assert not one.superseded(second)
    again = one.due(limited, second, START).begin
    assert [(request.enrichment, request.spent) for request in again] == [("owner", 1), ("quote", 1)]
    assert not one.passed(snapshot(3, "P2"))
    assert one.superseded(second)
    one.unpark("registry", 2, 0)
    assert one.offsets.position == 3


def test_of_one_that_was_renewed_and_is_let_go_only_the_last_offset_waits() -> None:
    limited, one = application(), lane()
    owner, _ = waiting(one, limited, snapshot(1))
    assert waiting(one, limited, snapshot(2, "P2")) == []
    one.let_go(owner, "registry")
    assert one.parked == {"registry": {2: 1}}
    assert one.offsets.position == 1, "the quote waits"
