"""An enrichment that reads its own result: how its rounds follow each other, and how they end."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from contracts import Api, Application, DeclarationError, Enriched, Event, Latest, State, enrichment
from contracts.model.enrichment import Enrichment
from contracts.planning.plan import EnrichmentStatus, enrichment_status, plan
from contracts.planning.request import Request
from contracts.wire import Answer, Snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROUNDS = 4


class Ping(Event):
    x: int | None = None


class Fit(BaseModel):
    error: int


class Report(BaseModel):
    text: str


class Thing(State):
    x: Annotated[int | None, Latest()]
    fit: Annotated[Fit | None, Enriched()]
    report: Annotated[Report | None, Enriched()]


@enrichment(api="a", rounds=ROUNDS, stale_after=timedelta(minutes=1))
async def fit(api: Api, x: int, fit: Fit | None) -> Fit:
    return await api.get("/fit/{x}", Fit, x=x, error=fit.error if fit else 0)


@enrichment(api="a")
async def report(api: Api, fit: Fit) -> Report:
    return await api.get("/report", Report, error=fit.error)


app = Application(name="t", event=Ping, state=Thing, enrichments=(report, fit))


def at(version: int, x: int, **slots: Answer) -> Snapshot:
    return Snapshot(device_id="d", first_seen=NOW, version=version, as_of=NOW, state={"x": x}, enrichments=slots)


def answer(request: Request, error: int | None) -> Answer:
    status: Any = "absence" if error is None else "result"
    result = None if error is None else {"error": error}
    return Answer(version=request.version, status=status, ts=NOW, fingerprint=request.fingerprint, result=result)


def run(errors: list[int | None], x: int = 1, previous: Answer | None = None) -> tuple[list[Request], Answer]:
    """Return the requests of the iteration, and its last answer: until then nothing else is requested."""
    requested: list[Request] = []
    while requests := plan(app, at(previous.version + 1 if previous else 1, x, **_slots(previous)), NOW):
        if [request.enrichment for request in requests] != ["fit"]:
            break
        requested += requests
        previous = answer(requests[0], errors[min(len(requested), len(errors)) - 1])
    assert previous
    return requested, previous


def _slots(previous: Answer | None) -> dict[str, Answer]:
    return {"fit": previous} if previous else {}


def test_each_round_reads_the_result_of_the_one_before_and_the_last_is_the_declared_one() -> None:
    requested, last = run([9, 7, 5, 3, 1])
    assert [request.inputs["fit"] for request in requested] == [None, {"error": 9}, {"error": 7}, {"error": 5}]
    assert [request.round for request in requested] == [1, 2, 3, 4]
    assert len({request.fingerprint for request in requested}) == ROUNDS
    assert [request.inputs for request in plan(app, at(20, 1, fit=last), NOW)] == [{"fit": {"error": 3}}]


def test_the_fingerprint_of_a_round_stays_over_releases() -> None:
    (first,) = plan(app, at(1, 1), NOW)
    assert first.fingerprint == "2336ac8bcd6c5109a9a5ed89.1.d9f16f6ef9a5bc1a9c0a2c98"


def test_it_stops_when_its_result_repeats() -> None:
    requested, last = run([9, 7, 7, 3])
    assert len(requested) == 3
    assert enrichment_status(app, fit, at(20, 1, fit=last), NOW) is EnrichmentStatus.ANSWERED


def test_an_absence_stops_it_and_skips_its_dependents() -> None:
    requested, last = run([9, None])
    assert len(requested) == 2
    assert [request.skipped for request in plan(app, at(20, 1, fit=last), NOW)] == ["fit: absence"]


def test_other_inputs_begin_it_anew_and_so_does_a_stale_end() -> None:
    _, last = run([9, 9])
    (request,) = plan(app, at(20, 2, fit=last), NOW)
    assert (request.round, request.inputs) == (1, {"x": 2, "fit": None})
    late = [
        request for request in plan(app, at(20, 1, fit=last), NOW + timedelta(minutes=2)) if request.enrichment == "fit"
    ]
    assert [(request.round, request.inputs["fit"]) for request in late] == [(1, None)]


@given(st.lists(st.none() | st.integers(0, 2), min_size=1, max_size=6), st.lists(st.integers(0, 3), max_size=4))
def test_it_always_stops(errors: list[int | None], before: list[int]) -> None:
    previous = None
    for x in before:
        _, previous = run(errors, x, previous)
    requested, last = run(errors, 7, previous)
    assert 1 <= len(requested) <= ROUNDS
    assert run(errors, 7, last) == ([], last)


@pytest.mark.parametrize("number", ["", "0", "-1", "x", "²", "9" * 5000])
def test_a_forged_round_is_none(number: str) -> None:
    (first,) = plan(app, at(1, 1), NOW)
    inputs, _, digest = first.fingerprint.partition(".")
    forged = answer(first, 1).model_copy(update={"fingerprint": f"{inputs}.{number}.{digest}"})
    assert [request.round for request in plan(app, at(2, 1, fit=forged), NOW)] == [1]


@pytest.mark.parametrize(("digits", "enrichments"), [(9, ["report"]), (10, ["fit"])])
def test_a_round_has_nine_digits_at_most(digits: int, enrichments: list[str]) -> None:
    (first,) = plan(app, at(1, 1), NOW)
    inputs, _, digest = first.fingerprint.partition(".")
    last = answer(first, 1).model_copy(update={"fingerprint": f"{inputs}.{'9' * digits}.{digest}"})
    assert [request.enrichment for request in plan(app, at(2, 1, fit=last), NOW)] == enrichments


async def endless(api: Api, x: int, endless: Fit | None) -> Fit:
    return await api.get("/{x}", Fit, x=x + (endless.error if endless else 0))


async def needing(api: Api, needing: Fit) -> Fit:
    return await api.get("/{x}", Fit, x=needing.error)


async def without(api: Api, x: int) -> Fit:
    return await api.get("/{x}", Fit, x=x)


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (endless, {}, r"Write @enrichment\(rounds=5\)"),
        (endless, {"rounds": 0}, "Write rounds=5"),
        (needing, {"rounds": 3}, r"Write `needing: … \| None`"),
        (without, {"rounds": 3}, r"Add `without: … \| None`"),
        (endless, {"rounds": 3, "when": lambda endless: endless is None}, "which the function does not need"),
        (without, {"at_most_every": timedelta(0)}, "Write at_most_every="),
    ],
)
def test_rounds_that_cannot_be_are_refused(function: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        enrichment(api="a", **options)(function)


def test_a_result_is_read_by_its_own_type() -> None:
    assert isinstance(fit, Enrichment)
    assert [need.annotation for need in fit.needs] == [int, Fit]
