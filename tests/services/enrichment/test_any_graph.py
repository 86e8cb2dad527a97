"""For any graph of enrichments, any sequence of snapshots, answers and failures: what a lane begins, and its end."""

from __future__ import annotations

from asyncio import Task
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from contracts import Application, Budget, Enriched, Event, Latest, Quantize, State
from contracts.model.condition import condition
from contracts.model.enrichment import Enrichment, Need
from contracts.planning.plan import wanted
from contracts.records.fold import Fold
from contracts.records.record import Delta, Record
from services.enrichment.partition_state import PartitionState
from services.runtime.broker_clock import BrokerClock
from tests.services.runtime.worker.assigned import assigned

if TYPE_CHECKING:
    from contracts.planning.request import Request
    from services.enrichment.in_flight import PendingRequest

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LIFETIME = timedelta(days=1)
MOST_ANSWERS = 500


class Found(BaseModel):
    value: int


class Ping(Event):
    x: int | None = None
    y: int | None = None


async def never(*_: Any, **__: Any) -> Found:
    raise NotImplementedError


def x_is_odd(x: int) -> bool:
    return x % 2 == 1


@st.composite
def applications(draw: st.DrawFn) -> Application:
    """Any graph: each enrichment needs fields and earlier enrichments, with all that can be declared of it."""
    names = [f"e{number}" for number in range(draw(st.integers(1, 5)))]
    declared = tuple(draw(enrichments(name, names[:number])) for number, name in enumerate(names))
    annotations: dict[str, Any] = {"x": Annotated[int | None, Latest()], "y": Annotated[int | None, Latest()]}
    annotations |= {name: Annotated[Found | None, Enriched()] for name in names}
    state = type("Any", (State,), {"__annotations__": annotations, "__module__": __name__}, lifetime=LIFETIME)
    budget = draw(st.none() | st.builds(Budget, requests=st.integers(1, 6), per=st.just(20 * SECOND)))
    return Application(name="any", event=Ping, state=state, enrichments=declared, budget=budget)


@st.composite
def enrichments(draw: st.DrawFn, name: str, earlier: list[str]) -> Enrichment:
    rounds = draw(st.none() | st.integers(1, 4))
    near = draw(st.none() | st.just(Quantize(2)))
    needs = [Need("x", int, optional=draw(st.booleans()), near=near)]
    needs += [Need("y", int, optional=True)] if draw(st.booleans()) else []
    chosen = draw(st.lists(st.sampled_from(earlier), unique=True)) if earlier else []
    needs += [Need(one, Found, optional=draw(st.booleans())) for one in chosen]
    needs += [Need(name, Found, optional=True)] if rounds else []
    when = condition(name, x_is_odd, {"x": int | None}) if draw(st.booleans()) else None
    every = draw(st.none() | st.just(3 * SECOND))
    return Enrichment(name, tuple(needs), Found, "api", never, None, when, rounds, every)


class Device:
    """One window in the real fold: a partition state plans its snapshots, and the test gives the answers."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.now = NOW
        self.fold = Fold(application)
        self.state = PartitionState(assigned(), 1000, LIFETIME, lambda: 0.0, BrokerClock(lambda: 0.0))
        self.under_way: dict[Any, PendingRequest] = {}
        self.begun: list[tuple[datetime, Request]] = []
        self.deltas = 0

    def change(self, name: str, value: int) -> None:
        values = {"x": None, "y": None, name: value}
        self.add(Delta("d", NOW, str(self.deltas), NOW, NOW + self.deltas * SECOND, values))

    def answer(self, which: int, status: str, value: int) -> None:
        pending = self.under_way.pop(sorted(self.under_way)[which % len(self.under_way)])
        request = pending.request
        self.state.begin_write(pending)
        self.under_way = {identity: one for identity, one in self.under_way.items() if not one.is_done}
        status = "skipped" if request.skipped is not None else status
        answer = {
            "version": request.version,
            "status": status,
            "ts": self.now,
            "fingerprint": request.fingerprint,
            "reason": request.skipped,
            "spent": request.spent,
            "result": {"value": value} if status == "result" else None,
        }
        self.state.finish(pending)
        delta_id = f"{request.identity} {request.version}"
        self.add(Delta("d", NOW, delta_id, NOW, slot=request.enrichment, answer=answer))

    def add(self, delta: Delta) -> None:
        self.deltas += 1
        self.snapshot = self.fold.add(delta)
        assert self.snapshot is not None
        due = self.state.plan(self.application, self.snapshot, self.now).requests
        self.state.partition.track(self.deltas, len(due))
        for request in due:
            self.begin(request)

    def begin(self, request: Request) -> None:
        """Check the invariants of a request that starts."""
        assert request.identity not in self.under_way, "never two alike in flight"
        one = self.application.by_name[request.enrichment]
        if request.skipped is None:
            missing = [need.name for need in one.needs if not need.optional and request.inputs[need.name] is None]
            assert not missing, "no request without its inputs"
            assert one.when is None or one.when.unmet(request.inputs) is None
            assert request.round <= (one.rounds or 1)
            self.begun.append((self.now, request))
        pending = self.state.add(Record("snapshots", 0, self.deltas, 0, b"d", b""), request, self.now)
        assert pending, "nothing waits here"
        pending.task = Mock(Task)
        self.under_way[request.identity] = pending

    def end(self) -> None:
        """One more snapshot, for what only waited for time to pass; then let all be answered."""
        self.change("y", 0)
        for number in range(MOST_ANSWERS):
            if not self.under_way:
                break
            self.answer(number, "result", number % 7)
        assert not self.under_way, "it ends"
        assert self.snapshot is not None
        assert not self.state.plan(self.application, self.snapshot, self.now).requests
        assert self.application.limited or not wanted(self.application, self.snapshot, self.now, self.now)


moves = st.one_of(
    st.tuples(st.just("change"), st.sampled_from("xy"), st.integers(0, 9)),
    st.tuples(
        st.just("answer"), st.integers(0, 9), st.sampled_from(["result", "absence", "failure"]), st.integers(0, 3)
    ),
    st.tuples(st.just("wait"), st.integers(1, 9)),
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(applications(), st.lists(moves, max_size=30))
def test_every_sequence_terminates_and_makes_only_allowed_requests(application: Application, script: list[Any]) -> None:
    device = Device(application)
    device.change("x", 1)
    for move, *values in script:
        if move == "change":
            device.change(*values)
        elif move == "wait":
            device.now += values[0] * SECOND
        elif device.under_way:
            device.answer(*values)
    device.end()
    require_budget(application, device.begun)
    require_intervals(application, device.begun)


def require_budget(application: Application, begun: list[tuple[datetime, Request]]) -> None:
    if application.budget is None:
        return
    periods = [application.budget.period(NOW, at) for at, _ in begun]
    assert all(periods.count(period) <= application.budget.requests for period in periods)


def require_intervals(application: Application, begun: list[tuple[datetime, Request]]) -> None:
    for enrichment in application.enrichments:
        times = [at for at, request in begun if request.enrichment == enrichment.name and request.round == 1]
        every = enrichment.at_most_every or timedelta(0)
        assert all(later - earlier >= every for earlier, later in pairwise(times))
