"""The requests that start: no second call for a known answer, and no loss when snapshots are repeated."""

from __future__ import annotations

from asyncio import Task
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from contracts import Budget
from contracts.metrics import worker as metrics
from contracts.metrics.counts import Counts
from contracts.model.condition import condition
from contracts.planning.fingerprint import fingerprint, skip_fingerprint
from contracts.records.record import Record
from contracts.wire import LARGEST_COUNT, Answer
from services.enrichment.partition_state import PartitionState
from services.enrichment.planner import EnrichmentPlanner
from services.runtime.broker_clock import BrokerClock
from services.runtime.worker.backpressure import Backpressure
from tests.services.enrichment.calls.calling import fleet
from tests.services.enrichment.fleet import QUICK, STALE, START, answer, app, application, snapshot
from tests.services.runtime.worker.assigned import assigned

if TYPE_CHECKING:
    from datetime import datetime

    from contracts import Application
    from contracts.planning.request import Request
    from contracts.wire import Snapshot
    from services.enrichment.in_flight import PendingRequest

HOUR = timedelta(hours=1)
OWNER = app.by_name["owner"]


def new_state(backpressure: Backpressure | None = None) -> PartitionState:
    return PartitionState(assigned(backpressure), 1000, HOUR, lambda: 0.0, BrokerClock(lambda: 0.0))


def started(one: PartitionState, request: Request, offset: int = 0) -> PendingRequest:
    """A request, as if its call were running."""
    pending = one.add(Record("snapshots", 0, offset, 0, b"d", b"{}"), request, START)
    assert pending
    pending.task = Mock(Task)
    return pending


def planned(one: PartitionState, enrichment: str, of: Snapshot, now: datetime = START) -> list[PendingRequest]:
    """The started requests of a snapshot's plan."""
    due = [request for request in one.plan(app, of, now).requests if request.enrichment == enrichment]
    one.partition.track(of.version, len(due))
    return [started(one, request, of.version) for request in due]


def owners(one: PartitionState, of: Snapshot) -> list[PendingRequest]:
    return planned(one, "owner", of)


def test_a_version_is_planned_once_and_an_earlier_one_never() -> None:
    one = new_state()
    assert [one.has_seen(snapshot(version)) for version in (2, 2, 1, 3)] == [False, True, True, False]
    assert not one.has_seen(snapshot(1, device="d2"))


def test_only_the_latest_version_that_was_seen_is_the_latest() -> None:
    one = new_state()
    assert not one.is_latest(snapshot(1))
    for version in (1, 3):
        one.has_seen(snapshot(version))
    assert [one.is_latest(snapshot(version)) for version in (1, 2, 3, 4)] == [False, False, True, False]
    assert not one.is_latest(snapshot(3, device="d2"))


def test_no_second_request_for_a_running_or_answered_one() -> None:
    one = new_state()
    (pending,) = owners(one, snapshot(1))
    assert owners(one, snapshot(2)) == []
    one.finish(pending)
    assert owners(one, snapshot(3)) == []
    assert len(owners(one, snapshot(4, "P2"))) == 1


def test_inputs_that_come_back_are_requested_again_after_the_answer_was_superseded() -> None:
    one = new_state()
    first, second = *owners(one, snapshot(1, "P1")), *owners(one, snapshot(2, "P2"))
    one.finish(first)
    one.finish(second)
    assert owners(one, snapshot(3, "P1")) == [], "the state does not show that P2's answer won"
    published = answer(2, fingerprint(OWNER, {"plate": "P2"}), {"name": "x"})
    assert [pending.request.version for pending in owners(one, snapshot(4, "P1", owner=published))] == [4]


def test_an_answer_that_wins_over_every_other_is_not_requested_again() -> None:
    one, forged = new_state(), answer(LARGEST_COUNT, "forged", {"name": "x"})
    (pending,) = owners(one, snapshot(1))
    one.finish(pending)
    assert [owners(one, snapshot(version, owner=forged)) for version in range(2, 9)] == [[]] * 7


def test_a_running_request_replaces_an_answer_that_would_replace_its_own() -> None:
    one, forged = new_state(), answer(1, "forged", {"name": "x"}, START + HOUR)
    (pending,) = owners(one, snapshot(1))
    assert owners(one, snapshot(2, owner=forged)) == [], "one call is enough"
    assert pending.answered().order == (0, 2), "the forged answer is of version 1, and later"


def test_an_answer_that_is_being_written_and_would_be_replaced_is_requested_again() -> None:
    one, forged = new_state(), answer(1, "forged", {"name": "x"}, START + HOUR)
    (pending,) = owners(one, snapshot(1))
    assert pending.answered().order == (0, 1)
    (again,) = owners(one, snapshot(2, owner=forged))
    assert again.request.order == (0, 2)
    assert owners(one, snapshot(3, owner=forged)) == [], "it is under way"
    one.finish(pending)
    assert owners(one, snapshot(4, owner=forged)) == []
    one.finish(again)
    assert owners(one, snapshot(5, owner=forged)) == [], "answered, but the state does not show it yet"
    assert one.partition.position == 6


def test_a_running_request_whose_inputs_came_back_is_the_latest() -> None:
    one = new_state()
    first, second = *owners(one, snapshot(1, "P1")), *owners(one, snapshot(2, "P2"))
    published = answer(2, fingerprint(OWNER, {"plate": "P2"}), {"name": "x"})
    assert owners(one, snapshot(3, "P1", owner=published)) == []
    assert first.answered().order == (0, 3)
    assert one.begin_write(first) == 1, "the answer to other inputs is not needed any more"
    assert second.is_done


def test_a_stale_answer_is_requested_again_once() -> None:
    one, late = new_state(), START + 2 * STALE
    (first,) = planned(one, "quote", snapshot(1))
    one.finish(first)
    old = answer(1, fingerprint(app.by_name["quote"], {"plate": "P1"}), {"price": 1.0})
    assert planned(one, "quote", snapshot(2, quote=old)) == []
    (again,) = planned(one, "quote", snapshot(3, quote=old), late)
    assert planned(one, "quote", snapshot(4, quote=old), late) == [], "under way"
    one.finish(again)
    assert planned(one, "quote", snapshot(5, quote=old), late) == [], "answered, but the state does not show it yet"


class Replay(RuleBasedStateMachine):
    """A partition's log, read by one worker after the other, each from what was committed.

    In every order of completions, revocations and assignments: each request before the committed position was answered
    or superseded by an answered one, and a completion of a former assignment changes nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Snapshot] = []
        self.answered: set[tuple[object, ...]] = set()
        self.committed = 0
        self.under_way: list[tuple[PartitionState, PendingRequest]] = []
        self.state, self.next = new_state(), 0

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
        requests = [] if self.state.has_seen(of) else self.state.plan(app, of, START)[0]
        self.state.partition.track(offset, len(requests))
        alike = {pending.request.identity for state, pending in self.under_way if state is self.state}
        assert not alike & {request.identity for request in requests}, "never two alike under way"
        self.under_way += [(self.state, started(self.state, request, offset)) for request in requests]

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        """One is answered, and supersedes the earlier ones. A former state answers nothing."""
        state, pending = taken = self.under_way.pop(data.draw(st.integers(0, len(self.under_way) - 1)))
        earlier = [
            other
            for other in self.under_way
            if slot(other) == slot(taken) and other[1].request.version < pending.request.version
        ]
        assert state.begin_write(pending) == len(earlier)
        self.under_way = [other for other in self.under_way if other not in earlier]
        self.answered |= {one.request.identity for _, one in [*earlier, taken]}
        state.finish(pending)

    @rule()
    def commit(self) -> None:
        if self.state.partition.position is not None:
            self.committed = self.state.partition.position

    @rule()
    def come_back(self) -> None:
        """The partition is revoked and assigned again; running requests may still finish, in the former state."""
        self.state, self.next = new_state(), self.committed

    @rule()
    def crash(self) -> None:
        self.under_way.clear()
        self.come_back()

    @invariant()
    def what_is_committed_was_answered(self) -> None:
        called_for = {
            request.identity for of in self.log[: self.committed] for request in new_state().plan(app, of, START)[0]
        }
        assert called_for <= self.answered


def slot(entry: tuple[PartitionState, PendingRequest]) -> tuple[object, ...]:
    """The requests of one slot are answered in order."""
    state, pending = entry
    return state, pending.request.device_id, pending.request.enrichment


TestReplay = Replay.TestCase
TestReplay.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


def test_a_budget_counts_running_requests_and_reports_those_beyond_it() -> None:
    limited = application()
    limited.budget = Budget(requests=2)
    one = new_state()
    for request in (first := one.plan(limited, snapshot(1), START)).requests:
        started(one, request)
    assert [(request.enrichment, request.spent) for request in first.requests] == [("owner", 1), ("quote", 1)]
    again = one.plan(limited, snapshot(2), START)
    assert (again.requests, again.suppressed, again.over_budget) == ([], 2, []), "running requests are not repeated"
    changed = one.plan(limited, snapshot(3, "P2"), START)
    assert not changed.requests
    assert [request.enrichment for request in changed.over_budget] == ["owner", "quote"]


def queued(one: PartitionState, of: Application, seen: Snapshot) -> list[PendingRequest]:
    """The queued requests of a snapshot."""
    due = one.plan(of, seen, START)
    one.partition.track(seen.version, len(due.requests))
    read = Record("snapshots", 0, seen.version, 0, b"d", b"{}")
    return [pending for request in due.requests if (pending := one.add(read, request, START))]


def test_a_coalesced_request_costs_nothing() -> None:
    limited, one = application(), new_state()
    limited.budget = Budget(requests=3)
    owner, quote = queued(one, limited, snapshot(1))
    for version in range(2, 9):
        assert queued(one, limited, snapshot(version, f"P{version}")) == []
    assert [(pending.request.inputs, pending.request.spent) for pending in (owner, quote)] == [({"plate": "P8"}, 1)] * 2
    one.start(owner, Mock(Task))
    (further,) = queued(one, limited, snapshot(9, "P9"))
    assert (further.request.enrichment, further.request.spent) == ("owner", 2)
    assert quote.request.inputs == {"plate": "P9"}, "queued requests are coalesced before the budget is spent"
    one.start(further, Mock(Task))
    last = one.plan(limited, snapshot(10, "P10"), START)
    assert [request.enrichment for request in last.requests] == ["quote"]
    assert [request.enrichment for request in last.over_budget] == ["owner"]


def test_an_interval_does_not_keep_a_queued_request_from_the_latest_inputs() -> None:
    limited = fleet(
        QUICK, enrichments=(replace(OWNER, at_most_every=HOUR), app.by_name["street"], app.by_name["quote"])
    )
    one = new_state()
    owner, _ = queued(one, limited, snapshot(1))
    assert queued(one, limited, snapshot(2, "P2")) == []
    assert owner.request.inputs == {"plate": "P2"}
    one.start(owner, Mock(Task))
    assert "owner" not in [request.enrichment for request in one.plan(limited, snapshot(3, "P3"), START).requests]


def test_a_skipped_request_replaces_a_queued_one_and_returns_its_cost() -> None:
    limited, one = application(), new_state()
    limited.budget = Budget(requests=1)
    (pending,) = queued(one, limited, snapshot(1))
    one.partition.track(2, 1)
    skip = one.add(Record("snapshots", 0, 2, 0, b"d", b"{}"), replace(pending.request, version=2, skipped="no"), START)
    assert skip
    assert (pending.is_done, skip.offsets) == (True, [2, 1])
    assert not one.can_start(pending), "its place was taken"
    one.start(skip, Mock(Task))
    one.finish(skip)
    assert one.partition.position == 3
    (again,) = queued(one, limited, snapshot(3, "P2"))
    assert again.request.spent == 1


def test_a_deferred_request_returns_its_cost_and_waits_at_its_latest_offset() -> None:
    limited, backpressure = application(), Backpressure(1000, 1000, 1000)
    one = new_state(backpressure)
    limited.budget = Budget(requests=2)
    first, second = snapshot(1), snapshot(2)
    assert not one.has_seen(first)
    owner, quote = queued(one, limited, first)
    assert not one.has_seen(second)
    assert queued(one, limited, second) == [], "coalesced"
    assert [(pending.request.version, pending.request.spent) for pending in (owner, quote)] == [(2, 1)] * 2
    for pending in (owner, quote):
        one.defer_queued("registry", pending)
    assert (one.partition.position, one.deferred_offsets("registry"), backpressure.deferred) == (2, [2], 2)
    assert not one.is_superseded(second)
    again = one.plan(limited, second, START).requests
    assert [(request.enrichment, request.spent) for request in again] == [("owner", 1), ("quote", 1)]
    assert not one.has_seen(snapshot(3, "P2"))
    assert one.is_superseded(second)
    one.resume("registry", 2, 0)
    assert one.partition.position == 3


def test_a_coalesced_request_waits_at_its_last_offset_only() -> None:
    limited, backpressure = application(), Backpressure(1000, 1000, 1000)
    one = new_state(backpressure)
    owner, quote = queued(one, limited, snapshot(1))
    assert queued(one, limited, snapshot(2, "P2")) == []
    assert (owner.offsets, quote.offsets, one.partition.position) == ([2], [2], 2), "no memory for each snapshot"
    one.defer_queued("registry", owner)
    assert (one.deferred_offsets("registry"), backpressure.deferred, one.partition.position) == ([2], 1, 2)


P1 = answer(1, fingerprint(OWNER, {"plate": "P1"}), {"name": "x"})
"""The answer to the first plate, in the slot of the owner."""


def test_a_queued_request_is_withdrawn_where_the_slot_has_the_answer_to_the_latest_inputs() -> None:
    limited, backpressure = application(), Backpressure(1000, 1000, 1000)
    one, limited.budget = new_state(backpressure), Budget(requests=9)
    owner, quote = queued(one, limited, snapshot(2, "P2", owner=P1))
    (street,) = queued(one, limited, snapshot(3, "P1", owner=P1))
    assert (owner.is_done, quote.is_done, quote.offsets) == (True, False, [3])
    assert backpressure.count == 2, "street and quote"
    for pending in (quote, street):
        one.start(pending, Mock(Task))
        one.finish(pending)
    assert one.partition.position == 4
    spent = {again.request.enrichment: again.request.spent for again in queued(one, limited, snapshot(4, "P4"))}
    assert spent == {"owner": 1, "quote": 2}, "the withdrawn request costs nothing"


def test_a_withdrawn_request_is_counted() -> None:
    counts, one = Counts(metrics.CATALOGUE), new_state()
    planner, of = EnrichmentPlanner(app, counts), snapshot(3, "P1", owner=P1)
    queued(one, app, snapshot(2, "P2", owner=P1))
    planner.plan(one, Record("snapshots", 0, 3, 0, b"d", of.encode()), START)
    assert counts.get(metrics.WITHDRAWN) == 1


def test_a_queued_request_is_withdrawn_where_the_slot_has_the_skip() -> None:
    when = condition("owner", lambda plate: plate != "none", {"plate": str})
    asked, one = fleet(QUICK, enrichments=(replace(OWNER, when=when), *app.enrichments[1:])), new_state()
    reason = skip_fingerprint(OWNER, "when is false")
    skip = Answer(version=1, status="skipped", ts=START, fingerprint=reason, reason="when is false")
    owner, _ = queued(one, asked, snapshot(2, "P1", owner=skip))
    _ = queued(one, asked, snapshot(3, "none", owner=skip))
    assert (owner.request.enrichment, owner.is_done) == ("owner", True)


def test_a_queued_request_is_withdrawn_where_the_answer_to_the_latest_inputs_is_on_its_way() -> None:
    one = new_state()
    (first,) = owners(one, snapshot(1, "P1"))
    one.finish(first)
    second, _ = queued(one, app, snapshot(2, "P2"))
    _ = queued(one, app, snapshot(3, "P1"))
    assert (second.request.enrichment, second.is_done) == ("owner", True)


LATER = answer(9, P1.fingerprint, {"name": "forged"})


@pytest.mark.parametrize(
    ("after", "has_started"),
    [(snapshot(3, None, owner=P1), False), (snapshot(3, owner=LATER), False), (snapshot(3, owner=P1), True)],
    ids=["waits for an input", "has an answer of a later version", "runs"],
)
def test_a_request_is_not_withdrawn_for_another_reason_or_while_it_runs(after: Snapshot, *, has_started: bool) -> None:
    one = new_state()
    owner, _ = queued(one, app, snapshot(2, "P2", owner=P1))
    if has_started:
        one.start(owner, Mock(Task))
    assert "owner" not in {request.enrichment for request in one.plan(app, after, START).requests}
    assert not owner.is_done
