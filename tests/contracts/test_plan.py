"""What a snapshot calls for."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from contracts import Api, Application, Enriched, Event, Latest, State, enrichment
from contracts.plan import Progress, Request, plan, progress, settled
from contracts.wire import Answer, Snapshot

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


app = Application(name="graph", event=Ping, state=Graph, enrichments=(d, c, b, a))


def snapshot(state: dict[str, Any], **answers: Answer) -> Snapshot:
    return Snapshot(device_id="d", first_seen=NOW, version=7, as_of=NOW, state=state, enrichments=answers)


def answer(request: Request, status: str = "result", ts: datetime = NOW, value: int = 1) -> Answer:
    result = {"value": value} if status == "result" else None
    return Answer.model_validate(
        {"version": request.version, "status": status, "ts": ts, "fingerprint": request.fingerprint, "result": result}
    )


def planned(at: Snapshot, now: datetime = NOW) -> dict[str, Request]:
    return {request.enrichment: request for request in plan(app, at, now)}


def test_only_what_has_its_needs_is_planned() -> None:
    assert planned(snapshot({})).keys() == set()
    assert planned(snapshot({"x": 1})).keys() == {"a", "d"}
    both = planned(snapshot({"x": 1, "y": 2}))
    assert both.keys() == {"a", "b"}, "d waits for b, which is being asked for"
    assert both["b"].inputs == {"x": 1, "y": 2}
    assert both["b"].version == 7


def test_what_is_answered_is_not_asked_again_until_its_inputs_change() -> None:
    first = planned(snapshot({"x": 1}))
    answered = {name: answer(request) for name, request in first.items()}
    assert not planned(snapshot({"x": 1}, **answered))
    assert planned(snapshot({"x": 2}, **answered)).keys() == {"a", "d"}


def test_what_waits_for_a_new_answer_is_not_called_with_the_old_one() -> None:
    state = {"x": 1, "y": 2}
    answers = {name: answer(request) for name, request in planned(snapshot(state)).items()}
    assert planned(snapshot(state, **answers)).keys() == {"c", "d"}
    changed = snapshot(state | {"y": 3}, **answers)
    assert planned(changed).keys() == {"b"}, "c and d wait for b to be asked with the new y"


def test_a_stale_answer_serves_until_the_next_comes() -> None:
    state = {"x": 1, "y": 2}
    at = snapshot(state, **{name: answer(request) for name, request in planned(snapshot(state)).items()})
    assert planned(at, NOW + timedelta(minutes=6)).keys() == {"a", "c", "d"}


def test_an_answer_becomes_stale() -> None:
    at = snapshot({"x": 1}, **{name: answer(request) for name, request in planned(snapshot({"x": 1})).items()})
    assert not planned(at, NOW + timedelta(minutes=5))
    assert planned(at, NOW + timedelta(minutes=6)).keys() == {"a"}


def test_an_absence_upstream_skips_what_needs_it_and_not_what_can_do_without() -> None:
    state = {"x": 1, "y": 2}
    first = planned(snapshot(state))
    at = snapshot(state, a=answer(first["a"]), b=answer(first["b"], "absence"))
    assert planned(at).keys() == {"d"}
    assert progress(app, c, at, NOW) is Progress.SKIPPED
    assert not settled(app, at, NOW)


@given(
    st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 3)), max_size=6),
    st.randoms(use_true_random=False),
)
def test_planning_ends_for_any_stream_and_any_answers(changes: list[tuple[str, int]], random: Any) -> None:
    """A request never lacks its inputs, and after finitely many answers nothing is left to ask."""
    state: dict[str, Any] = {}
    answers: dict[str, Answer] = {}
    for name, value in [*changes, ("x", 0)]:
        state[name] = value
        for _ in range(1 + 2 * len(app.enrichments)):
            requests = planned(snapshot(state, **answers))
            if not requests:
                break
            chosen = requests[random.choice(sorted(requests))]
            needs = app.by_name[chosen.enrichment].needs
            assert all(need.optional or chosen.inputs[need.name] is not None for need in needs)
            status = random.choice(["result", "absence", "failure"])
            answers[chosen.enrichment] = answer(chosen, status, value=random.randrange(3))
        assert settled(app, snapshot(state, **answers), NOW)
