"""The requests that a device may make in a period: by the slots alone, and with those in flight."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from contracts import Api, Application, Budget, DeclarationError, Enriched, Event, Latest, State, enrichment
from contracts.planning.admission import LastRequest, admit
from contracts.planning.plan import EnrichmentStatus, enrichment_status, plan, settled, wanted
from contracts.planning.request import Request
from contracts.wire import REDRIVEN, Answer, Snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


class Ping(Event):
    x: int | None = None
    y: int | None = None


class Found(BaseModel):
    value: int


class Thing(State, lifetime=24 * HOUR):
    x: Annotated[int | None, Latest()]
    y: Annotated[int | None, Latest()]
    a: Annotated[Found | None, Enriched()]
    b: Annotated[Found | None, Enriched()]


@enrichment(api="api", when=lambda x: x >= 0)
async def a(api: Api, x: int) -> Found:
    return await api.get("/{x}", Found, x=x)


@enrichment(api="api", at_most_every=MINUTE)
async def b(api: Api, y: int) -> Found:
    return await api.get("/{y}", Found, y=y)


app = Application(name="t", event=Ping, state=Thing, enrichments=(a, b), budget=Budget(requests=3, per=HOUR))


def at(version: int, state: dict[str, int], **slots: Answer) -> Snapshot:
    return Snapshot(device_id="d", first_seen=NOW, version=version, as_of=NOW, state=state, enrichments=slots)


def answer(request: Request, now: datetime) -> Answer:
    facts: dict[str, Any] = {"version": request.version, "fingerprint": request.fingerprint, "spent": request.spent}
    status: Any = "skipped" if request.skipped else "result"
    return Answer(**facts, status=status, ts=now, result=None if request.skipped else {"value": 1})


def spend(times: int, now: datetime = NOW) -> Answer:
    """The slot of `a` after `times` requests with ever other inputs."""
    slots: dict[str, Answer] = {}
    for version in range(1, times + 1):
        (request,) = plan(app, at(version, {"x": version}, **slots), now)
        assert request.spent == version
        slots["a"] = answer(request, now)
    return slots["a"]


def test_past_the_budget_the_device_is_left_as_it_is_until_the_next_period() -> None:
    spent = spend(3)
    over = at(9, {"x": 99, "y": 1}, a=spent)
    assert plan(app, over, NOW + HOUR - MINUTE) == []
    assert settled(app, over, NOW)
    assert [enrichment_status(app, enrichment, over, NOW) for enrichment in (a, b)] == [
        EnrichmentStatus.OVER_BUDGET
    ] * 2
    begun = plan(app, over, NOW + HOUR)
    assert [(request.enrichment, request.spent) for request in begun] == [("a", 1), ("b", 1)]


def test_the_requests_of_all_enrichments_count_together_and_the_first_in_order_come_first() -> None:
    spent = spend(2)
    begun = plan(app, at(9, {"x": 99, "y": 1}, a=spent), NOW)
    assert [(request.enrichment, request.spent) for request in begun] == [("a", 3)]


def test_a_skip_costs_nothing_and_forgets_nothing() -> None:
    spent = spend(3)
    (skip,) = plan(app, at(9, {"x": -1}, a=spent), NOW)
    assert (skip.skipped, skip.spent) == ("when is false", 3)
    assert plan(app, at(10, {"x": 5}, a=answer(skip, NOW)), NOW) == []


def test_requests_that_no_slot_has_yet_count_too() -> None:
    snapshot = at(9, {"x": 99, "y": 1})
    called_for = wanted(app, snapshot, NOW, NOW)
    admission = admit(app, snapshot, NOW, called_for, {"a": LastRequest(NOW, 2)})
    assert [(request.enrichment, request.spent) for request in admission.admitted] == [("a", 3)]
    assert [request.enrichment for request in admission.over_budget] == ["b"]
    admission = admit(app, snapshot, NOW, called_for, {"b": LastRequest(NOW - MINUTE / 2, 0)})
    assert [request.enrichment for request in admission.too_soon] == ["b"]


def test_an_interval_delays_new_inputs() -> None:
    (request,) = plan(app, at(1, {"y": 1}), NOW)
    answered = answer(request, NOW)
    changed = at(2, {"y": 2}, b=answered)
    assert plan(app, changed, NOW + MINUTE - timedelta(seconds=1)) == []
    assert enrichment_status(app, b, changed, NOW) is EnrichmentStatus.TOO_SOON
    assert [request.inputs for request in plan(app, changed, NOW + MINUTE)] == [{"y": 2}]


def test_an_interval_delays_no_further_round() -> None:
    (request,) = plan(app, at(1, {"y": 1}), NOW)
    begun = {"b": LastRequest(NOW)}
    later = replace(request, round=2)
    admission = admit(app, at(2, {"y": 1}), NOW, [request, later], begun)
    assert [one.round for one in admission.admitted] == [2]
    assert admission.too_soon == [request]


def test_a_clock_that_was_far_ahead_delays_nothing() -> None:
    (request,) = plan(app, at(1, {"y": 1}), NOW)
    ahead = answer(request, NOW + 100 * HOUR)
    assert len(plan(app, at(2, {"y": 2}, b=ahead), NOW)) == 1


def test_an_interval_delays_no_redrive() -> None:
    second = timedelta(seconds=1)
    mark = Answer(version=1, status="failure", ts=NOW, fingerprint=REDRIVEN, reason="to be requested again")
    redriven = at(2, {"y": 1}, b=mark)
    assert [request.enrichment for request in plan(app, redriven, NOW + second)] == ["b"]
    called_for = wanted(app, redriven, NOW + second, NOW + second)
    assert admit(app, redriven, NOW + second, called_for, {"b": LastRequest(NOW - second)}).admitted, "it had failed"
    assert admit(app, redriven, NOW + second, called_for, {"b": LastRequest(NOW + second)}).too_soon, "it is on its way"


@pytest.mark.parametrize(
    ("requests", "per", "message"),
    [(0, HOUR, "Write requests=20"), (1, timedelta(0), r"Write per=timedelta\(hours=1\)")],
)
def test_a_budget_for_nothing_is_refused(requests: int, per: timedelta, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        Budget(requests=requests, per=per)
