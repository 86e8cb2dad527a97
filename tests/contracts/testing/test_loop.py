"""The kit for authors: it behaves as a worker, and its errors name the mistake of a test."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from contracts import (
    AbsentError,
    Api,
    Application,
    Batch,
    Budget,
    DeclarationError,
    Echo,
    Enriched,
    Event,
    Latest,
    PermanentCallError,
    Policy,
    RetryableCallError,
    State,
    Suite,
    enrichment,
    field,
)
from contracts.records.record import RecordError
from contracts.testing import Clock, FakeApi, Loop
from contracts.testing.fake_api import UnpreparedError
from tests.clicks import Identified, owned

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Ping(Event):
    plate: str | None = None


class Owner(BaseModel):
    name: str


class Score(BaseModel):
    points: int


class Seat(BaseModel):
    row_number: int = Field(alias="rowNumber")
    deck: int = Field(1, validation_alias="deckNumber")
    code: str = Field("A", serialization_alias="seatCode")


class Car(State):
    plate: Annotated[str | None, Latest()]
    owner: Annotated[Owner | None, Enriched()]
    score: Annotated[Score | None, Enriched()]


@enrichment(api="registry")
async def owner(api: Api, plate: str) -> Owner:
    return await api.get("/owners/{plate}", Owner, plate=plate)


@enrichment(api="bank", rounds=5)
async def score(api: Api, owner: Owner, score: Score | None) -> Score:
    return await api.get("/score", Score, name=owner.name, points=score.points if score else 0)


def loop(
    registry: dict[str, Any], points: Any = None, budget: Budget | None = None, clock: Clock | None = None
) -> Loop:
    app = Application(
        name="cars",
        event=Ping,
        state=Car,
        enrichments=(owner, score),
        apis={"registry": Policy(attempts=3)},
        budget=budget,
    )
    bank = FakeApi({"/score": points or {"points": 1}})
    return Loop(app, apis={"registry": FakeApi(registry), "bank": bank}, clock=clock or Clock(NOW))


def ping(number: int = 1, plate: str = "A 1", ts: datetime = NOW) -> Ping:
    return Ping(device_id="d", event_id=str(number), first_seen=NOW, ts=ts, plate=plate)


class Known(State, where=field("plate").is_not_null()):
    plate: Annotated[str | None, Latest()]


def test_an_event_that_the_filter_excludes_changes_nothing() -> None:
    known = Loop(Application(name="known", event=Ping, state=Known), apis={}, clock=Clock(NOW))
    unknown = ping(2).model_copy(update={"plate": None})
    with pytest.raises(KeyError):
        known.send(unknown)
    first = known.send(ping())
    assert known.send(unknown) == first == known.snapshot("d")


async def test_requests_wait_until_settle() -> None:
    cars = loop({"/owners/A%201": {"name": "Ann"}}, points=lambda points, **_: {"points": min(points + 1, 3)})
    assert cars.send(ping()).version == 1
    assert cars.statuses("d") == {}
    assert len(cars.under_way) == 1
    await cars.settle()
    assert cars.calls == ["owner", *["score"] * 4], "the fourth round repeats the third"
    assert cars.result("d", "score") == {"points": 3}
    assert cars.send(ping()).version == cars.snapshot("d").version == 6, "the same event counts once"


async def test_a_call_is_attempted_as_often_as_its_policy_allows() -> None:
    busy = RetryableCallError("busy")
    cars = loop({"/owners/A%201": [busy, busy, Owner(name="Ann")]})
    cars.send(ping())
    await cars.settle()
    assert cars.statuses("d")["owner"] == "result"
    never = loop({"/owners/A%201": busy})
    never.send(ping())
    await never.settle()
    assert never.statuses("d") == {"owner": "failure", "score": "skipped"}
    assert never.snapshot("d").enrichments["owner"].reason == "busy"


@pytest.mark.parametrize(
    ("answer", "status"),
    [(AbsentError("nobody"), "absence"), (PermanentCallError("no"), "failure"), ({"x": 1}, "failure")],
)
async def test_an_invalid_result_is_reported_as_by_a_worker(answer: Any, status: str) -> None:
    cars = loop({"/owners/A%201": answer})
    cars.send(ping())
    await cars.settle()
    assert cars.statuses("d") == {"owner": status, "score": "skipped"}


async def test_a_key_of_a_batch_is_prepared_by_itself() -> None:
    api = FakeApi({"/owners?plate=A1": {"name": "Ann"}, "/owners": AbsentError("nobody")})
    batch = Batch("/owners", Owner, parameter="plate")
    assert await api.get_one(batch, "A1") == Owner(name="Ann")
    with pytest.raises(AbsentError):
        await api.get_one(batch, "B")
    assert api.calls == ["/owners?plate=A1", "/owners?plate=B"]


async def test_a_prepared_model_has_the_aliases_of_the_api() -> None:
    seat = Seat.model_validate({"rowNumber": 7, "deckNumber": 2, "code": "B"})
    assert await FakeApi({"/seat": seat}).get("/seat", Seat) == seat


async def test_a_budget_stops_further_requests() -> None:
    cars = loop({"/owners/A%201": {"name": "Ann"}, "/owners/B": {"name": "Bob"}}, budget=Budget(requests=1))
    cars.send(ping())
    cars.send(ping(2, "B", NOW + timedelta(seconds=1)))
    await cars.settle()
    assert cars.calls == ["owner"]
    assert cars.stopped > 0


async def test_an_answer_in_the_next_period_of_a_budget_spends_nothing_of_it() -> None:
    clock = Clock(NOW + timedelta(minutes=59))
    registry = {"/owners/A%201": {"name": "Ann"}, "/owners/B": {"name": "Bob"}}
    cars = loop(registry, budget=Budget(requests=3), clock=clock)
    cars.send(ping())
    clock.forward(timedelta(minutes=2))
    await cars.settle()
    cars.send(ping(2, "B", clock()))
    await cars.settle()
    assert cars.calls == ["owner", "score", "score", "owner"]


async def test_the_error_of_an_unprepared_call_names_the_missing_answer() -> None:
    cars = loop({"/owners/B": {"name": "Bob"}})
    cars.send(ping())
    with pytest.raises(UnpreparedError, match="no answer to '/owners/A%201': add it to FakeApi, which has /owners/B"):
        await cars.settle()


def test_an_event_that_the_job_would_refuse_is_refused() -> None:
    with pytest.raises(RecordError, match="incredible_time"):
        loop({}).send(ping(ts=NOW + timedelta(hours=1)))


def test_a_device_that_sent_nothing_has_no_snapshot() -> None:
    with pytest.raises(KeyError):
        loop({}).snapshot("d")


def test_a_loop_of_no_application_or_without_a_clock_is_refused() -> None:
    application = Application(name="known", event=Ping, state=Known)
    suite: Any = Suite(application)
    with pytest.raises(DeclarationError, match=r"Suite is no Application. Write a Loop\(application, …\) for each"):
        Loop(suite, apis={}, clock=Clock(NOW))
    clocks: list[Any] = [datetime, NOW, Clock(NOW.replace(tzinfo=None)), lambda: 0.0]
    for clock in clocks:
        with pytest.raises(DeclarationError, match=r"Write clock=Clock\(datetime\(2026, 1, 1, tzinfo=UTC\)\)"):
            Loop(application, apis={}, clock=clock)


@pytest.mark.parametrize("event", [{"device_id": "d"}, Owner(name="Ann")])
def test_only_an_event_of_the_application_is_sent(event: Any) -> None:
    with pytest.raises(DeclarationError, match=r"is no Ping. Write send\(Ping\(…\)\)"):
        loop({}).send(event)


async def test_the_result_of_a_misspelt_enrichment_is_refused() -> None:
    cars = loop({"/owners/A%201": AbsentError("nobody")})
    cars.send(ping())
    await cars.settle()
    assert cars.result("d", "owner") is None
    with pytest.raises(DeclarationError, match=r"'ownr'.* Name one of these: owner, score"):
        cars.result("d", "ownr")


class Owned(State):
    plate: Annotated[str | None, Latest()]
    owner: Annotated[Owner | None, Enriched()]


async def answered(function: Callable[..., Any], apis: dict[str, Api]) -> Loop:
    """Return the loop in which this enrichment has answered."""

    async def owner(api: Api, plate: str) -> Owner:
        answer: Owner = function(api, plate)
        return answer

    app = Application(name="owned", event=Ping, state=Owned, enrichments=(enrichment(api="registry")(owner),))
    cars = Loop(app, apis=apis, clock=Clock(NOW))
    cars.send(ping())
    await cars.settle()
    return cars


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda *_: {"name": "Ann"}, r"owner: returned dict, not Owner. Write `return Owner\(…\)`, or raise AbsentErr"),
        (lambda *_: None, "owner: returned NoneType, not Owner"),
        (lambda *_: Score(points=1), "owner: returned Score, not Owner"),
        (lambda api, _: api.get("/", Owner), "owner: returned coroutine, not Owner.* did you forget await?"),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
async def test_a_function_that_returns_no_result_is_refused(function: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        await answered(function, {"registry": FakeApi({})})


async def test_an_api_that_the_test_lacks_is_named() -> None:
    with pytest.raises(DeclarationError, match=r"'registry', which has no fake\. Write apis={'registry': FakeApi"):
        await answered(lambda *_: None, {})


async def test_a_path_without_its_value_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"has no value for {id}. Write get\('/q/{id}', …, id=…\)"):
        await FakeApi({"/q/1": {"name": "Ann"}}).get("/q/{id}", Owner, v=1)


class Plane(BaseModel):
    tailnum: Annotated[str, Echo()]


async def test_a_fake_api_refuses_an_answer_to_another_call_as_a_worker_does() -> None:
    api = FakeApi(
        {"/planes/N1": [{"tailnum": "N2"}, {"tailnum": "N1"}], "/planes": [{"tailnum": "N2"}, {"tailnum": "N1"}]}
    )
    with pytest.raises(RetryableCallError, match=r"answers another request: Plane\.tailnum"):
        await api.get("/planes/{tailnum}", Plane, tailnum="N1")
    assert (await api.get("/planes/{tailnum}", Plane, tailnum="N1")).tailnum == "N1"
    batch = Batch("/planes", Plane, parameter="id", key="tailnum")
    with pytest.raises(RetryableCallError, match=r"answers another request: Plane\.tailnum"):
        await api.get_one(batch, "N1")
    assert (await api.get_one(batch, "N1")).tailnum == "N1"


async def test_each_window_of_an_event_is_enriched() -> None:
    loop = Loop(owned, {"registry": FakeApi({"/owners/p": {"name": "Ann"}})}, Clock(NOW))
    newest = loop.send(Identified(click="c", event_id="1", page="p", country="US", ts=NOW))
    await loop.settle()
    assert newest.first_seen == NOW
    starts = [NOW - timedelta(minutes=30), NOW]
    assert [loop.result("p", "owner", start) for start in starts] == [{"name": "Ann"}] * 2
    assert loop.snapshot("p").first_seen == NOW, "the newest window"
    assert loop.calls == ["owner", "owner"]
    with pytest.raises(KeyError):
        loop.snapshot("p", NOW + timedelta(minutes=30))
