"""Rounded inputs: which multiple a value stands for, and that a flutter calls nothing."""

import math
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from contracts import Api, Application, DeclarationError, Enriched, Event, Latest, Quantize, State, enrichment
from contracts.planning.plan import plan
from contracts.planning.request import Request
from contracts.types.columns import LONG
from contracts.wire import Answer, Snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Ping(Event):
    lat: float | None = None
    seen: datetime | None = None


class Place(BaseModel):
    street: str


class Car(State):
    lat: Annotated[float | None, Latest()]
    seen: Annotated[datetime | None, Latest()]
    place: Annotated[Place | None, Enriched()]


@enrichment(api="city")
async def place(
    api: Api, lat: Annotated[float, Quantize(0.01)], seen: Annotated[datetime, Quantize(timedelta(hours=1))] | None
) -> Place:
    return await api.get("/place", Place, lat=lat, seen=str(seen))


app = Application(name="cars", event=Ping, state=Car, enrichments=(place,))


def requested(version: int, previous: Answer | None = None, **state: Any) -> list[Request]:
    slots = {"place": previous} if previous else {}
    at = Snapshot(device_id="d", first_seen=NOW, version=version, as_of=NOW, state=state, enrichments=slots)
    return plan(app, at, NOW)


def answer(request: Request) -> Answer:
    result = {"street": "Oak"}
    return Answer(version=request.version, status="result", ts=NOW, fingerprint=request.fingerprint, result=result)


def test_the_function_gets_the_rounded_value_and_one_nearby_is_the_same_request() -> None:
    (exact,) = requested(1, lat=52.5149, seen="2026-01-01T10:29:00.5Z")
    (nearby,) = requested(1, lat=52.5051, seen=datetime(2026, 1, 1, 9, 31, tzinfo=UTC))
    assert exact.inputs == {"lat": 52.51, "seen": "2026-01-01T10:00:00Z"}
    assert exact.fingerprint == nearby.fingerprint
    assert requested(1, lat=52.5151)[0].inputs == {"lat": 52.52, "seen": None}


def test_a_value_that_crosses_a_border_keeps_the_requested_multiple() -> None:
    (request,) = requested(1, lat=52.5149)
    previous = answer(request)
    for lat in (52.5151, 52.5149, 52.5174, 52.5026):
        assert requested(2, previous, lat=lat) == []
    for lat, rounded in ((52.5176, 52.52), (52.5024, 52.5), (53.0, 53.0)):
        assert [request.inputs["lat"] for request in requested(2, previous, lat=lat)] == [rounded]


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.01, 1 / 3, 1e-9, 2.5, 7, 1e300]))
@example(3.0411722424048156e16, 7)
def test_a_rounded_number_is_near_and_rounding_it_again_changes_nothing(value: float, step: float) -> None:
    near = Quantize(step)
    rounded = near.choices(value)[0]
    assert math.isfinite(rounded)
    assert abs(rounded - value) <= step / 2 * (1 + 1e-9) + abs(value) * 1e-15
    assert near.choices(rounded)[0] == rounded
    assert str(near.choices(0.0 * value)[0]) in {"0.0", "0"}


@given(st.datetimes(timezones=st.just(UTC)), st.timedeltas(timedelta(microseconds=1), timedelta(days=400)))
def test_a_rounded_time_is_near_and_is_a_time_of_the_wire(value: datetime, step: timedelta) -> None:
    near = Quantize(step)
    rounded = near.choices(value)[0]
    again = near.choices(rounded)[0]
    assert again == rounded
    if isinstance(rounded, str):
        assert abs(datetime.fromisoformat(rounded) - value) <= step / 2


def test_a_whole_number_stays_whole_and_other_types_are_unchanged() -> None:
    assert [Quantize(10).choices(value)[0] for value in (14, 16, -4)] == [10, 20, 0]
    assert [Quantize(0.1).choices(value) for value in (None, "x", [1], True)] == [(None,), ("x",), ([1],), (True,)]
    others = None, "yesterday", 5, 2.5, True, [1], {"a": 1}
    assert [Quantize(timedelta(hours=1)).choices(value) for value in others] == [(value,) for value in others]


@given(st.integers(-LONG, LONG - 1), st.integers(1, 2 * LONG))
@example(-LONG, 10_000)
@example(LONG - 1, 10_000)
def test_a_rounded_whole_number_is_near_and_has_64_bits(value: int, step: int) -> None:
    rounded = Quantize(step).choices(value)
    assert all(-LONG <= choice < LONG for choice in rounded)
    assert abs(rounded[0] - value) <= step / 2 * (1 + 1e-9)


@pytest.mark.parametrize("step", [0, -1, math.inf, math.nan, timedelta(0), timedelta(seconds=-1)])
def test_no_step_is_refused(step: Any) -> None:
    with pytest.raises(DeclarationError, match=r"Write Quantize\(0\.01\)"):
        Quantize(step)


@pytest.mark.parametrize(
    ("kind", "step"), [(str, 1.0), (int, 0.5), (float, timedelta(hours=1)), (datetime, 60.0), (bool, 1)]
)
def test_a_step_that_does_not_fit_the_type_is_refused(kind: Any, step: Any) -> None:
    async def place(api: Api, lat: Any) -> Place:
        return await api.get("/place", Place, lat=lat)

    place.__annotations__["lat"] = Annotated[kind, Quantize(step)]
    with pytest.raises(DeclarationError, match="cannot be rounded"):
        enrichment(api="city")(place)
