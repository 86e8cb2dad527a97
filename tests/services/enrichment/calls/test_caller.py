"""A result that the job can read, or a failure with its reason."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any

import orjson
import pytest
from pydantic import BaseModel, ConfigDict, Field

from contracts import (
    AbsentError,
    Api,
    Application,
    Batch,
    Enriched,
    Event,
    Latest,
    PermanentCallError,
    Policy,
    RetryableCallError,
    State,
    enrichment,
)
from contracts.model.enrichment import unfilled
from contracts.planning.request import Request
from contracts.records.decode import Decoder
from contracts.records.record import Record, timestamp_ms
from contracts.records.schema import schemas
from contracts.testing import Clock, FakeApi, Loop
from services.enrichment.calls.caller import Caller, Outcome
from services.enrichment.calls.retrier import CallRetrier
from services.enrichment.feedback import feedback
from tests.services.enrichment.calls.time import EPOCH


class Seen(Event):
    plate: str | None = None


class Part(BaseModel):
    since: datetime | None = None


class Seat(BaseModel):
    """The alias of one field is the name of another."""

    model_config = ConfigDict(serialize_by_alias=True)

    row_number: int = Field(alias="rowNumber")
    door: int | None = Field(default=None, alias="row_number")


class Found(BaseModel):
    at: datetime | None = None
    number: float = Field(default=0.0, le=100)
    count: int = 0
    parts: list[Part] = []


class Car(State):
    plate: Annotated[str | None, Latest()]
    found: Annotated[Found | None, Enriched()]


class Nothing:
    async def get(self, path: str, model: Any, /, **values: str | float) -> Any:
        raise NotImplementedError

    async def get_one(self, batch: Batch[Any], key: str | int) -> Any:
        raise NotImplementedError


REQUEST = Request("d1", EPOCH, "found", "f", 1, EPOCH, {"plate": "P1"})


async def outcome(*results: Any) -> tuple[Application, Outcome]:
    """Return the outcome of an enrichment that gives these results, one run after the other."""
    left = list(results)

    @enrichment(api="registry")
    async def found(_: Api, plate: str) -> Found:
        assert plate == "P1"
        result: Found = left.pop(0)
        if isinstance(result, BaseException):
            raise result
        return result

    app = Application(name="a", event=Seen, state=Car, enrichments=(found,))
    retrier = CallRetrier(Policy(attempts=3), sleep=lambda _: asyncio.sleep(0), draw=min, on_retry=lambda: None)
    return app, await Caller(app, {"found": Nothing()}, {"found": retrier}).answer(REQUEST)


TEXT: dict[str, Any] = {"at": None, "number": "x", "count": 0, "parts": []}
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001  # without an offset: that is the point


@pytest.mark.parametrize(
    "result",
    [
        Found(at=NAIVE),
        Found(parts=[Part(since=NAIVE)]),
        Found.model_construct(at=None, number=101.0, count=0, parts=[]),
        Found.model_construct(at=None, number=0.0, count=1 << 63, parts=[]),
        Found.model_construct(**TEXT),
    ],
)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
async def test_a_result_that_the_job_would_refuse_is_a_failure(result: Found) -> None:
    _, ended = await outcome(result)
    assert ended.status == "failure"
    assert ended.reason is not None
    assert ended.reason.startswith("the job would refuse the result (")


@pytest.mark.parametrize(
    "result", [Found(), Found(at=datetime(2026, 1, 1, 1, 2, 3, 4, UTC), parts=[Part(since=EPOCH)], number=0.1)]
)
async def test_the_job_can_read_every_result(result: Found) -> None:
    app, ended = await outcome(result)
    assert ended.status == "result"
    value = feedback(REQUEST, ended, EPOCH).encode()
    delta = Decoder(app).feedback(Record("feedback", 0, 0, timestamp_ms(EPOCH), b"d1", value))
    assert delta.answer is not None
    assert Found.model_validate({k: v for k, v in delta.answer["result"].items() if v is not None}) == result


async def test_a_number_that_json_does_not_have_is_a_failure() -> None:
    _, ended = await outcome(Found.model_construct(at=None, number=float("nan"), count=0, parts=[]))
    assert (ended.status, ended.reason) == ("failure", "the result holds a number that JSON does not have")


@pytest.mark.parametrize("count", [1 << 64, -(1 << 63) - 1, 10**30])
async def test_a_number_that_no_record_can_have_is_a_failure_with_its_reason(count: int) -> None:
    _, ended = await outcome(Found(count=count))
    why = "the result cannot be written as JSON (Integer exceeds 64-bit range)"
    assert (ended.status, ended.reason) == ("failure", why)


async def test_an_alias_of_a_result_is_the_name_of_the_api_only() -> None:
    @enrichment(api="registry", when=lambda seat: (seat.row_number, seat.door) == (7, 3))
    async def fare(_: Api, seat: Seat) -> Found:
        return Found(count=10 * seat.row_number + (seat.door or 0))

    @enrichment(api="registry")
    async def seat(_: Api, plate: str) -> Seat:
        return Seat.model_validate({"rowNumber": len(plate), "row_number": 3})

    class Ride(State):
        plate: Annotated[str | None, Latest()]
        seat: Annotated[Seat | None, Enriched()]
        fare: Annotated[Found | None, Enriched()]

    app = Application(name="a", event=Seen, state=Ride, enrichments=(seat, fare))
    loop = Loop(app, apis={"registry": FakeApi({})}, clock=Clock(EPOCH))
    loop.send(Seen(device_id="d", event_id="e", ts=EPOCH, first_seen=EPOCH, plate="1234567"))
    await loop.settle()
    found = loop.snapshot("d").enrichments
    assert (found["seat"].result, found["fare"].status) == ({"row_number": 7, "door": 3}, "result")
    retrier = CallRetrier(Policy(), sleep=lambda _: asyncio.sleep(0), draw=min, on_retry=lambda: None)
    caller = Caller(app, dict.fromkeys(app.by_name, Nothing()), dict.fromkeys(app.by_name, retrier))
    request = Request("d", EPOCH, "fare", "f", 1, EPOCH, {"seat": found["seat"].result})
    assert (await caller.answer(request)).result == {"number": 0.0, "count": 73, "parts": []}
    request = Request("d", EPOCH, "seat", "f", 1, EPOCH, {"plate": "1234567"})
    assert (await caller.answer(request)).result == found["seat"].result
    document = schemas(app)["snapshot"]
    assert "row_number" in document["$defs"]["Seat"]["properties"]


async def test_a_function_may_ask_to_be_run_again() -> None:
    _, ended = await outcome(RetryableCallError("not ready"), RetryableCallError("not ready"), Found(count=3))
    assert ended.result == {"number": 0.0, "count": 3, "parts": []}
    _, ended = await outcome(*[RetryableCallError("not ready")] * 3)
    assert (ended.status, ended.reason, ended.attempts) == ("failure", "not ready", 3)


async def test_a_reason_with_half_a_surrogate_is_written() -> None:
    for error in (PermanentCallError("no car \ud800"), AbsentError("no car \ud800")):
        _, ended = await outcome(error)
        assert orjson.loads(feedback(REQUEST, ended, EPOCH).encode())["reason"] == "no car ?"


async def test_a_bug_is_a_failure_without_the_message_of_the_exception() -> None:
    _, ended = await outcome(KeyError("canary"))
    assert (ended.status, ended.reason) == ("failure", "the function raised KeyError")


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ({"count": 1}, "returned dict, not Found. Write `return Found(…)`, or raise AbsentError"),
        (None, "returned NoneType, not Found. Write `return Found(…)`, or raise AbsentError"),
        (asyncio.sleep, "returned coroutine, not Found. Write `return await …`: did you forget await?"),
        (unfilled("/q/{id}", "id"), "get('/q/{id}', …): has no value for {id}. Write get('/q/{id}', …, id=…)"),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
async def test_a_wrong_result_or_path_is_a_failure_that_names_the_remedy(result: Any, problem: str) -> None:
    _, ended = await outcome(result(0) if callable(result) else result)
    assert ended.status == "failure"
    assert ended.reason is not None
    assert ended.reason.endswith(problem)


async def test_a_cancellation_by_the_function_itself_is_a_bug() -> None:
    _, ended = await outcome(asyncio.CancelledError())
    assert (ended.status, ended.reason) == ("failure", "the function raised CancelledError")


async def be_cancelled() -> None:
    """Catch a cancellation of this task, as a function may do with that of its request."""
    request = asyncio.current_task()
    assert request is not None
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(0)


async def test_a_request_that_the_worker_cancels_has_no_outcome() -> None:
    await be_cancelled()
    with pytest.raises(asyncio.CancelledError):
        await outcome(asyncio.CancelledError())


async def test_a_function_that_makes_a_failure_of_its_cancellation_is_not_run_again() -> None:
    await be_cancelled()
    with pytest.raises(asyncio.CancelledError):
        await outcome(RetryableCallError("cut off"), Found(count=3))
