"""The requests that a snapshot calls for."""

import zlib
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from contracts import Api, Application, Enriched, Event, Latest, State, Topics, enrichment
from contracts.planning.fingerprint import fingerprint
from contracts.planning.plan import EnrichmentStatus, enrichment_status, plan, settled, wanted
from contracts.planning.request import Request
from contracts.records.fold import Fold
from contracts.records.record import Delta
from contracts.wire import LARGEST_COUNT, REDRIVEN, Answer, Snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Ping(Event):
    x: int | None = None
    y: int | None = None


class Found(BaseModel):
    value: int


class Graph(State):
    x: Annotated[int | None, Latest()]
    y: Annotated[int | None, Latest()]
    a: Annotated[Found | None, Enriched()]
    b: Annotated[Found | None, Enriched()]
    c: Annotated[Found | None, Enriched()]
    d: Annotated[Found | None, Enriched()]
    e: Annotated[Found | None, Enriched()]
    f: Annotated[Found | None, Enriched()]


@enrichment(api="api", stale_after=timedelta(minutes=5))
async def a(api: Api, x: int) -> Found:
    return await api.get("/{x}", Found, x=x)


@enrichment(api="api")
async def b(api: Api, x: int, y: int) -> Found:
    return await api.get("/{x}", Found, x=x + y)


@enrichment(api="api")
async def c(api: Api, a: Found, b: Found) -> Found:
    return await api.get("/{x}", Found, x=a.value + b.value)


@enrichment(api="api")
async def d(api: Api, x: int, b: Found | None) -> Found:
    return await api.get("/{x}", Found, x=x if b is None else b.value)


@enrichment(api="api")
async def e(api: Api, x: int, c: Found) -> Found:
    return await api.get("/{x}", Found, x=x + c.value)


@enrichment(api="api")
async def f(api: Api, y: int, e: Found | None) -> Found:
    return await api.get("/{x}", Found, x=y if e is None else e.value)


app = Application(name="graph", event=Ping, state=Graph, enrichments=(f, e, d, c, b, a))
replay = Application(name="graph", event=Ping, state=Graph, enrichments=app.enrichments, topics=Topics(replay=True))
WINDOW = Graph.lifetime + Graph.grace


def snapshot(state: dict[str, Any], **answers: Answer) -> Snapshot:
    """One that has merged these answers: its version is beyond theirs."""
    version = 1 + max((answered.version for answered in answers.values()), default=6)
    return Snapshot(device_id="d", first_seen=NOW, version=version, as_of=NOW, state=state, enrichments=answers)


def answer(request: Request, status: str = "result", value: int = 1) -> Answer:
    status = "skipped" if request.skipped else status
    facts = {"version": request.version, "fingerprint": request.fingerprint, "status": status, "ts": NOW}
    facts["reason"] = request.skipped
    return Answer.model_validate(facts | {"result": {"value": value} if status == "result" else None})


def answered(state: dict[str, Any]) -> dict[str, Answer]:
    """The answers to all that a state calls for, round by round."""
    answers: dict[str, Answer] = {}
    while requests := due(snapshot(state, **answers)):
        answers |= {name: answer(request) for name, request in requests.items()}
    return answers


def due(at: Snapshot, now: datetime = NOW) -> dict[str, Request]:
    """The requests by enrichment, those without a call too."""
    return {request.enrichment: request for request in plan(app, at, now)}


def planned(at: Snapshot, now: datetime = NOW) -> dict[str, Request]:
    return {name: request for name, request in due(at, now).items() if request.skipped is None}


def test_only_enrichments_with_their_inputs_are_planned() -> None:
    assert planned(snapshot({})).keys() == set()
    assert planned(snapshot({"x": 1})).keys() == {"a", "d"}
    both = planned(snapshot({"x": 1, "y": 2}))
    assert both.keys() == {"a", "b"}, "d waits for b, which is being requested"
    assert both["b"].inputs == {"x": 1, "y": 2}
    assert both["b"].version == 7


def test_the_order_of_names_changes_no_fingerprint() -> None:
    one, other = ({"x": 1, "b": {"value": 1, "unit": "m"}}, {"b": {"unit": "m", "value": 1}, "x": 1})
    assert fingerprint(d, one) == fingerprint(d, other)


def test_an_answered_enrichment_is_requested_again_only_for_new_inputs() -> None:
    answers = answered({"x": 1})
    assert not planned(snapshot({"x": 1}, **answers))
    assert planned(snapshot({"x": 2}, **answers)).keys() == {"a", "d"}


def test_a_failure_that_was_opened_again_is_requested_again_for_the_same_inputs() -> None:
    failures = {name: answer(request, "failure") for name, request in planned(snapshot({"x": 1})).items()}
    assert not planned(snapshot({"x": 1}, **failures))
    mark = failures["a"].model_copy(update={"fingerprint": REDRIVEN, "ts": NOW + timedelta(seconds=1)})
    merged = Enriched().merge(mark.model_dump(), failures["a"].model_dump())
    assert merged == mark.model_dump(), "it wins over the failure that it opens"
    assert planned(snapshot({"x": 1}, **failures | {"a": mark})).keys() == {"a"}


def test_an_enrichment_waits_for_the_new_answer_of_its_dependency() -> None:
    state = {"x": 1, "y": 2}
    answers = {name: answer(request) for name, request in planned(snapshot(state)).items()}
    assert planned(snapshot(state, **answers)).keys() == {"c", "d"}
    changed = snapshot(state | {"y": 3}, **answers)
    assert planned(changed).keys() == {"b"}, "c and d wait for b to be requested with the new y"


def test_a_stale_answer_serves_until_the_next_comes() -> None:
    state = {"x": 1, "y": 2}
    at = snapshot(state, **{name: answer(request) for name, request in planned(snapshot(state)).items()})
    assert planned(at, NOW + timedelta(minutes=6)).keys() == {"a", "c", "d"}


def test_an_answer_becomes_stale() -> None:
    at = snapshot({"x": 1}, **answered({"x": 1}))
    assert not planned(at, NOW + timedelta(minutes=5))
    assert planned(at, NOW + timedelta(minutes=6)).keys() == {"a"}


def test_an_answer_of_a_clock_that_was_far_ahead_is_stale() -> None:
    ahead = {name: one.model_copy(update={"ts": NOW + timedelta(days=365)}) for name, one in answered({"x": 1}).items()}
    assert planned(snapshot({"x": 1}, **ahead)).keys() == {"a"}
    assert not planned(snapshot({"x": 1}, **ahead), NOW + timedelta(days=365, minutes=-5))


def test_an_absence_upstream_skips_required_and_not_optional_dependents() -> None:
    state = {"x": 1, "y": 2}
    first = planned(snapshot(state))
    at = snapshot(state, a=answer(first["a"]), b=answer(first["b"], "absence"))
    assert planned(at).keys() == {"d", "f"}
    assert [enrichment_status(app, enrichment, at, NOW) for enrichment in (c, e)] == [EnrichmentStatus.SKIPPED] * 2
    assert not settled(app, at, NOW)


def test_a_skip_is_reported_once_with_the_reason() -> None:
    state = {"x": 1, "y": 2}
    first = planned(snapshot(state))
    answers = {"a": answer(first["a"]), "b": answer(first["b"], "absence")}
    skips = {name: request for name, request in due(snapshot(state, **answers)).items() if request.skipped}
    assert {name: request.skipped for name, request in skips.items()} == {"c": "b: absence", "e": "c: skipped"}
    answers |= {name: answer(request) for name, request in skips.items()}
    assert due(snapshot(state, **answers)).keys() == {"d", "f"}, "and is not reported again"
    answers["b"] = answer(first["b"], "failure").model_copy(update={"version": 8})
    again = due(snapshot(state, **answers))
    assert again["c"].skipped == "b: failure", "but the new reason is"
    assert "e" not in again, "whose own is the same"


def test_a_skipped_enrichment_is_requested_when_its_dependency_gets_a_result() -> None:
    state = {"x": 1, "y": 2}
    first = planned(snapshot(state))
    answers = {"a": answer(first["a"]), "b": answer(first["b"], "absence")}
    answers |= {name: answer(request) for name, request in due(snapshot(state, **answers)).items()}
    answers["b"] = answer(first["b"]).model_copy(update={"version": 9})
    assert planned(snapshot(state, **answers)).keys() == {"c", "d"}, "and e waits for c"


def test_a_dependency_that_waits_for_a_new_answer_is_awaited() -> None:
    state = {"x": 1, "y": 2}
    answers = answered(state)
    changed = snapshot(state | {"x": 2}, **answers)
    assert planned(changed).keys() == {"a", "b"}, "not e, with x=2 and the c of x=1"
    assert enrichment_status(app, e, changed, NOW) is EnrichmentStatus.WAITING


def test_an_answer_to_former_inputs_is_not_used() -> None:
    state = {"x": 1, "y": 2}
    answers, state = answered(state), state | {"x": 2}
    requests = planned(snapshot(state, **answers))
    answers |= {"a": answer(requests["a"], "absence"), "b": answer(requests["b"])}
    at = snapshot(state, **answers)
    assert [enrichment_status(app, enrichment, at, NOW) for enrichment in (c, e)] == [EnrichmentStatus.SKIPPED] * 2
    assert {name: request.inputs for name, request in planned(at).items()} == {
        "d": {"x": 2, "b": {"value": 1}},
        "f": {"y": 2, "e": None},
    }


GRACE = app.state.grace


def answered_by(at: Snapshot, **facts: Any) -> Snapshot:
    """The snapshot with such an answer in the slot of a."""
    theirs = {"status": "result", "ts": NOW, "result": {"value": 1}, "version": 1, "fingerprint": "of x=1"}
    return at.model_copy(update={"enrichments": {"a": Answer.model_validate(theirs | facts)}})


@pytest.mark.parametrize("version", [8, 9, LARGEST_COUNT - 1])
def test_an_answer_of_a_version_to_come_is_waited_for_and_replaced_after_the_grace(version: int) -> None:
    """The job reads again what it had read before a crash within the grace; later, the version is forged."""
    at, late = snapshot({"x": 2}).model_copy(update={"version": 8}), NOW + timedelta(minutes=6)
    same = answered_by(at, version=version, fingerprint=fingerprint(a, {"x": 2}))
    for present, stands in (
        (answered_by(at, version=version), EnrichmentStatus.CLOSED),
        (same, EnrichmentStatus.ANSWERED),
    ):
        assert planned(present, late).keys() == {"d"}
        assert enrichment_status(app, a, present, late) is stands
        passed = present.model_copy(update={"version": version + 1})
        assert planned(passed, late).keys() == {"a", "d"}
    forged, after = answered_by(at, version=version), NOW + GRACE + timedelta(microseconds=1)
    assert planned(forged, NOW + GRACE).keys() == {"d"}
    assert planned(forged, after)["a"].order == (0, version + 1)
    replaced = answered_by(at, version=version + 1, ts=after, fingerprint=planned(forged, after)["a"].fingerprint)
    assert planned(replaced, after).keys() == {"d"}


def test_an_answer_from_the_future_is_replaced_at_once() -> None:
    at = snapshot({"x": 2}).model_copy(update={"version": 8})
    assert planned(answered_by(at, version=9, ts=NOW + timedelta(days=1)))["a"].version == 10


def test_an_answer_of_the_largest_version_is_not_replaced() -> None:
    """No answer could win."""
    at, after = snapshot({"x": 2}).model_copy(update={"version": 8}), NOW + 2 * GRACE
    assert planned(answered_by(at, version=LARGEST_COUNT), after).keys() == {"d"}


def test_answers_of_an_earlier_epoch_are_replaced_for_any_version() -> None:
    at = snapshot({"x": 2}).model_copy(update={"version": 8, "epoch": 2})
    assert planned(answered_by(at, version=100, epoch=1))["a"].order == (2, 8)
    assert planned(answered_by(at, version=100, epoch=2)).keys() == {"d"}
    same = answered_by(at, version=100, epoch=1, fingerprint=fingerprint(a, {"x": 2}))
    assert enrichment_status(app, a, same, NOW) is EnrichmentStatus.ANSWERED


def test_nothing_is_requested_for_an_expired_window_except_in_a_replay() -> None:
    fresh, end = snapshot({"x": 1}), NOW + WINDOW
    stale = snapshot({"x": 1}, **answered({"x": 1}))
    for at, called_for in ((fresh, {"a", "d"}), (stale, {"a"})):
        assert planned(at, end).keys() == called_for
        over = end + timedelta(microseconds=1)
        assert not plan(app, at, over)
        assert settled(app, at, over)
        assert {request.enrichment for request in plan(replay, at, over)} == called_for
        assert enrichment_status(app, a, fresh, over) is EnrichmentStatus.CLOSED
        for clocks in ((over, end), (end, over)):  # one of them is wrong
            assert {request.enrichment for request in wanted(app, at, *clocks)} == called_for


class Loop:
    """One window in the real fold, with an API whose answers are known, and come when they come."""

    def __init__(self, salt: int) -> None:
        self.under_way: dict[Any, Request] = {}
        self._salt = salt
        self._fold = Fold(app)
        self._deltas = 0

    def change(self, **fields: int) -> None:
        values = {"x": None, "y": None} | fields
        self._add(Delta("d", NOW, str(self._deltas), NOW, NOW + timedelta(seconds=self._deltas), values))

    def answer(self, which: int) -> None:
        """One of the requests under way is answered: every fourth with an absence."""
        request = self.under_way.pop(sorted(self.under_way)[which % len(self.under_way)])
        needs = app.by_name[request.enrichment].needs
        assert request.skipped or all(need.optional or request.inputs[need.name] is not None for need in needs)
        drawn = zlib.crc32(f"{self._salt} {request.fingerprint}".encode())
        document = answer(request, "result" if drawn % 4 else "absence", value=drawn % 3).model_dump()
        self._add(
            Delta("d", NOW, f"{request.identity} {request.version}", NOW, slot=request.enrichment, answer=document)
        )

    def end(self) -> dict[str, tuple[EnrichmentStatus, Any]]:
        """Return the status and result of each enrichment when no request is left."""
        for number in range(200):
            if self.under_way:
                self.answer(number)
        assert not self.under_way, "it ends"
        assert settled(app, self.snapshot, NOW)
        statuses = {
            enrichment.name: enrichment_status(app, enrichment, self.snapshot, NOW) for enrichment in app.enrichments
        }
        assert all(self.snapshot.enrichments[name].status == end for name, end in statuses.items() if end == "skipped")
        results = {name: answered_by.result for name, answered_by in self.snapshot.enrichments.items()}
        return {
            name: (end, results[name] if end is EnrichmentStatus.ANSWERED else None) for name, end in statuses.items()
        }

    def _add(self, delta: Delta) -> None:
        self._deltas += 1
        folded = self._fold.add(delta)
        assert folded is not None
        self.snapshot = folded
        for request in plan(app, folded, NOW):
            self.under_way.setdefault(request.identity, request)


@given(
    st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 3), st.lists(st.integers(0, 5), max_size=6)), max_size=6),
    st.integers(0, 1000),
)
def test_the_end_state_depends_on_the_last_inputs_only(changes: list[tuple[str, int, list[int]]], salt: int) -> None:
    loop, last = Loop(salt), {"x": 0}
    for name, value, answers in [*changes, ("x", 0, [])]:
        last[name] = value
        loop.change(**{name: value})
        for which in answers:
            if loop.under_way:
                loop.answer(which)
    anew = Loop(salt)
    anew.change(**last)
    assert loop.end() == anew.end()
