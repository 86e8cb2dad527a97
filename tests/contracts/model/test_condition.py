"""Conditions of enrichments: the requests that they allow, and the skips."""

from datetime import UTC, datetime
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from contracts import Api, Application, DeclarationError, Enriched, Event, Latest, State, enrichment
from contracts.model.condition import condition
from contracts.planning.plan import EnrichmentStatus, enrichment_status, plan, settled
from contracts.planning.request import Request
from contracts.wire import Answer, Snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Ride(Event):
    speed: float | None = None
    since: datetime | None = None


class Place(BaseModel):
    street: str
    cars: int = 0


class Rule(BaseModel):
    limit: float


class Rider(State):
    speed: Annotated[float | None, Latest()]
    since: Annotated[datetime | None, Latest()]
    place: Annotated[Place | None, Enriched()]
    rule: Annotated[Rule | None, Enriched()]


def moving(speed: float) -> bool:
    return speed > 10


@enrichment(api="city", when=moving)
async def place(api: Api, speed: float, since: datetime | None) -> Place:
    return await api.get("/place", Place, speed=speed, since=str(since))


@enrichment(api="city", when=lambda place, since: 1 // place.cars > 0 and (since is None or since.year > 2000))
async def rule(api: Api, place: Place, since: datetime | None) -> Rule:
    return await api.get("/rule/{street}", Rule, street=place.street, since=str(since))


app = Application(name="rides", event=Ride, state=Rider, enrichments=(place, rule))


def at(version: int, state: dict[str, Any], **answers: Answer) -> Snapshot:
    return Snapshot(device_id="d", first_seen=NOW, version=version, as_of=NOW, state=state, enrichments=answers)


def due(snapshot: Snapshot) -> dict[str, Request]:
    return {request.enrichment: request for request in plan(app, snapshot, NOW)}


def answer(request: Request, **result: Any) -> Answer:
    status: Any = "skipped" if request.skipped else "result"
    facts: dict[str, Any] = {"version": request.version, "fingerprint": request.fingerprint, "status": status}
    return Answer(**facts, ts=NOW, reason=request.skipped, result=result or None)


def test_while_it_is_false_there_is_no_call_and_one_report_for_any_inputs() -> None:
    first = due(at(1, {"speed": 5.0}))
    assert {name: request.skipped for name, request in first.items()} == {
        "place": "moving is false",
        "rule": "place: skipped",
    }
    skipped = {name: answer(request) for name, request in first.items()}
    still = at(2, {"speed": 6.0}, **skipped)
    assert settled(app, still, NOW)
    assert enrichment_status(app, place, still, NOW) is EnrichmentStatus.SKIPPED
    called = due(at(3, {"speed": 11.0}, **skipped))
    assert called["place"].skipped is None
    assert called["place"].inputs == {"speed": 11.0, "since": None}


def test_when_it_becomes_false_again_the_slot_is_skipped() -> None:
    place = answer(due(at(1, {"speed": 11.0}))["place"], street="Oak", cars=1)
    assert due(at(2, {"speed": 11.0}, place=place)).keys() == {"rule"}
    assert due(at(3, {"speed": 3.0}, place=place))["place"].skipped == "moving is false"


@pytest.mark.parametrize(
    ("cars", "since", "unmet"),
    [
        (1, "2026-01-01T00:00:00Z", None),
        (1, datetime(2026, 1, 1, tzinfo=UTC), None),
        (1, "1999-01-01T00:00:00Z", "when is false"),
        (0, None, "when raised ZeroDivisionError"),
        ("many", None, "when raised ValidationError"),
    ],
)
def test_it_gets_its_inputs_as_they_are_declared_and_one_that_raises_skips(cars: Any, since: Any, unmet: Any) -> None:
    assert rule.when
    assert rule.when.unmet({"place": {"street": "Oak", "cars": cars}, "since": since}) == unmet


class Unknown:
    """A result without a truth value, as pandas.NA."""

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


def test_a_result_without_a_truth_value_skips() -> None:
    unclear: Any = lambda speed: speed and Unknown()  # noqa: E731  # a predicate without a name
    assert condition("place", unclear, {"speed": float}).unmet({"speed": 1.0}) == "when raised TypeError"


def nothing() -> bool:
    return True


def anything(**inputs: float) -> bool:
    return bool(inputs)


async def later(speed: float) -> bool:
    return speed > 1


@pytest.mark.parametrize(
    ("when", "message"),
    [
        (lambda street: street, "Name one of these: speed"),
        (nothing, "Name the inputs that it looks at"),
        (anything, "Name the inputs that it looks at"),
        (later, "Write a plain function"),
    ],
)
def test_a_condition_that_cannot_be_evaluated_is_refused(when: Any, message: str) -> None:
    async def place(api: Api, speed: float) -> Place:
        return await api.get("/place", Place, speed=speed)

    with pytest.raises(DeclarationError, match=message):
        enrichment(api="city", when=when)(place)
