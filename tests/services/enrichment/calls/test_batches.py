"""Many keys in one call: when it is made, and what each key gets of its answer."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from pydantic import BaseModel, field_validator

from contracts import Api, Batch, DeclarationError, PermanentCallError, Policy, enrichment
from contracts.metrics import worker as metrics
from services.enrichment.calls.batches import split_response
from services.enrichment.calls.response import Response
from tests.services.enrichment.calls.scripted import LATENCY_S, Desk, Scripted
from tests.services.enrichment.calls.virtual import virtually
from tests.services.enrichment.fleet import Owner, quote, street

if TYPE_CHECKING:
    from collections.abc import Callable

WAIT = timedelta(milliseconds=20)
POLICY = Policy(attempts=3)


def keys(target: str) -> list[str]:
    return [value for _, value in parse_qsl(urlsplit(target).query)]


def owners(target: str) -> list[Any]:
    return [{"plate": key, "name": f"owner of {key}"} for key in keys(target)]


def response(found: Any) -> Response:
    return Response(200, json.dumps(found).encode())


def desk(api: Scripted, policy: Policy = POLICY, **declared: Any) -> Desk:
    """The fleet, its owners requested many at a time."""
    parts: dict[str, Any] = {"parameter": "plate", "key": "plate", "size": 10, "wait": WAIT}
    batch = Batch("/owners", Owner, **parts | declared)

    @enrichment(api="registry")
    async def owner(api: Api, plate: str) -> Owner:
        return await api.get_one(batch, plate)

    return Desk(api, policy, draw=Random(7).uniform, enrichments=(owner, street, quote))


def test_a_full_call_is_made_at_once_and_a_part_of_one_after_the_wait() -> None:
    async def scenario() -> None:
        api = Scripted(lambda target: response(owners(target)))
        one = desk(api)
        found = await one.answers(25)
        assert [answer.result for answer in found] == [{"name": f"owner of P{n}", "rating": 1.0} for n in range(25)]
        assert [len(keys(target)) for _, target in api.requests] == [10, 10, 5]
        assert [when for when, _ in api.requests] == pytest.approx([0, 0, 0.02], abs=1e-5)
        assert one.counts.get(metrics.CALLS, "registry", "owner", "result") == 3

    virtually(scenario())


def test_each_key_is_kept_by_itself() -> None:
    async def scenario() -> None:
        api = Scripted(lambda target: response(owners(target)))
        one = desk(api)
        await one.answers(3)
        await one.answers(4)
        assert [keys(target) for _, target in api.requests] == [["P0", "P1", "P2"], ["P3"]]

    virtually(scenario())


@pytest.mark.parametrize("is_begun", [False, True])
@pytest.mark.parametrize("staying", [0, 1])
def test_keys_that_nothing_waits_for_are_requested_no_more(staying: int, *, is_begun: bool) -> None:
    is_down = True

    async def scenario() -> None:
        nonlocal is_down
        api = Scripted(lambda target: Response(503, b"") if is_down else response(owners(target)))
        one = desk(api, Policy(attempts=100), size=20)
        waiting = [asyncio.create_task(one.answer(f"P{number}")) for number in range(12)]
        await asyncio.sleep(4.0 if is_begun else WAIT.total_seconds() / 2)
        assert not api.under_way
        for task in waiting[staying:]:
            task.cancel()
        await asyncio.wait(waiting[staying:])
        await asyncio.sleep(0)
        is_down, api.requests = False, []
        assert len(asyncio.all_tasks()) == 1 + staying * (1 + is_begun), "no call without a request that waits"
        assert [(await task).status for task in waiting[:staying]] == ["result"] * staying
        await asyncio.sleep(60)
        requested = [keys(target) for _, target in api.requests]
        assert [found[0] for found in requested] == ["P0"] * staying
        assert is_begun or requested == [["P0"]] * staying, "an attempt goes on with its keys"

    virtually(scenario())


def by_key(target: str) -> Any:
    return {item["plate"]: {"name": item["name"]} for item in owners(target)}


@pytest.mark.parametrize(
    ("answer", "declared"),
    [
        (owners, {}),
        (by_key, {}),
        (lambda target: {"found": owners(target)}, {"items": "found"}),
        (lambda target: owners(target.replace("%2C", "&plate=")), {"separator": ","}),
    ],
)
def test_the_forms_of_an_answer(answer: Callable[[str], Any], declared: dict[str, Any]) -> None:
    async def scenario() -> None:
        found = await desk(Scripted(lambda target: response(answer(target))), **declared).answers(3)
        assert [one.result for one in found if one.result] == [
            {"name": f"owner of P{n}", "rating": 1.0} for n in range(3)
        ]

    virtually(scenario())


def test_the_outcome_of_each_key_is_its_own_item() -> None:
    async def scenario() -> None:
        items = {
            "P0": {"name": "good"},
            "P1": None,
            "P3": {"name": ["wrong"]},
            "P4": {"status": 404},
            "P5": {"status": 403},
            "P6": {"status": 503},
            "P7": {"status": 200, "name": "good"},
        }
        api = Scripted(lambda _: response(items))
        found = await desk(api, status="status").answers(8)
        assert [(one.status, one.reason) for one in found] == [
            ("result", None),
            ("absence", "not in the response"),
            ("absence", "not in the response"),
            ("failure", "the response does not fit Owner: name: Input should be a valid string"),
            ("absence", "status 404"),
            ("failure", "status 403"),
            ("failure", "status 503"),
            ("result", None),
        ]
        assert [keys(target) for _, target in api.requests[1:]] == [["P3", "P6"], ["P3", "P6"]], "retried by the policy"
        assert [one.attempts for one in found if one.reason == "status 503"] == [3]

    virtually(scenario())


class City(BaseModel):
    name: str

    @field_validator("name", mode="before")
    @classmethod
    def _inner(cls, value: Any) -> Any:
        return value["inner"]


def test_an_item_on_which_a_validator_raises_fails_alone() -> None:
    batch = Batch("/cities", City, parameter="id")
    items = [{"id": "1", "name": None}, {"id": "2", "name": {"inner": "Oslo"}}]
    broken, good = split_response(batch, ["1", "2"], POLICY, items, b"").values()
    assert isinstance(broken, PermanentCallError)
    assert (broken.reason, broken.response) == ("a validator of City raised TypeError", '{"id":"1","name":null}')
    assert isinstance(good, tuple)
    assert good[1] == City.model_construct(name="Oslo")


def test_a_call_that_fails_is_tried_again_for_all_its_keys() -> None:
    async def scenario() -> None:
        statuses = iter((503, 200))
        api = Scripted(lambda target: Response(next(statuses), response(owners(target)).body))
        found = await desk(api).answers(5)
        assert {one.status for one in found} == {"result"}
        assert [len(keys(target)) for _, target in api.requests] == [5, 5]

    virtually(scenario())


def test_a_storm_of_failures_makes_one_call_per_attempt_for_any_number_of_keys() -> None:
    async def scenario() -> None:
        statuses = iter((503, 429, 503, 200))
        api = Scripted(lambda target: Response(next(statuses), response(owners(target)).body))
        one = desk(api, Policy(attempts=5), size=50)
        assert {answer.status for answer in await one.answers(50)} == {"result"}
        assert [len(keys(target)) for _, target in api.requests] == [50] * 4, "each waited for itself"
        assert one.counts.get(metrics.CALLS, "registry") == 4
        assert one.counts.get(metrics.RETRIES, "registry") == 3

    virtually(scenario())


def test_a_batch_has_one_deadline_for_all_its_attempts() -> None:
    async def scenario() -> None:
        api = Scripted(lambda _: Response(503, b"busy"))
        policy = Policy(attempts=100, timeout=timedelta(seconds=1), deadline=timedelta(seconds=3), breaker=None)
        ended = await desk(api, policy).answers(10)
        assert {(answer.status, answer.reason) for answer in ended} == {("failure", "status 503")}
        assert {answer.attempts for answer in ended} == {len(api.requests)}
        assert len(api.requests) > 3
        assert api.requests[-1][0] < 3.1

    virtually(scenario())


def test_failed_items_are_requested_again_together_and_the_others_not() -> None:
    async def scenario() -> None:
        def items(target: str) -> Response:
            found = {item["plate"]: item for item in owners(target)}
            if len(api.requests) < 3:
                found |= {"P1": {"status": 503}, "P2": {"name": ["wrong"]}}
            return response(found)

        api = Scripted(items)
        ended = await desk(api, Policy(attempts=9), status="status").answers(4)
        await asyncio.sleep(60)  # in which nothing more may be requested
        assert [answer.status for answer in ended] == ["result"] * 4
        assert [keys(target) for _, target in api.requests] == [["P0", "P1", "P2", "P3"], ["P1", "P2"], ["P1", "P2"]]

    virtually(scenario())


def test_an_answered_key_does_not_wait_for_the_retried_ones() -> None:
    async def scenario() -> None:
        found = {"P0": {"name": "good"}, "P1": {"status": 503}}
        one = desk(Scripted(lambda _: response(found)), Policy(attempts=50), status="status")
        pending = [asyncio.create_task(one.answer(f"P{number}")) for number in range(2)]
        assert (await pending[0]).status == "result"
        assert not pending[1].done()
        one.calls.close()
        await asyncio.gather(*pending, return_exceptions=True)

    virtually(scenario())


def test_answered_halves_are_not_requested_again() -> None:
    async def scenario() -> None:
        statuses = iter((413, 200, 503, 200))
        api = Scripted(lambda target: Response(next(statuses), response(owners(target)).body))
        assert {one.status for one in await desk(api).answers(4)} == {"result"}
        halves = [["P0", "P1", "P2", "P3"], ["P0", "P1"], ["P2", "P3"], ["P2", "P3"]]
        assert [keys(target) for _, target in api.requests] == halves

    virtually(scenario())


@pytest.mark.parametrize(("status", "calls"), [(400, 19), (403, 1)])
def test_a_list_of_bad_keys_is_less_than_two_calls_for_each_and_one_where_all_are_refused(
    status: int, calls: int
) -> None:
    async def scenario() -> None:
        api = Scripted(lambda _: Response(status, b"no"))
        assert {one.reason for one in await desk(api).answers(10)} == {f"status {status}"}
        assert len(api.requests) == calls

    virtually(scenario())


def test_a_key_that_cannot_be_sent_fails_alone() -> None:
    async def scenario() -> None:
        one = desk(Scripted(lambda target: response(owners(target))), separator=",")
        ended = await asyncio.gather(one.answer("P1"), one.answer("a,b"))
        assert [answer.status for answer in ended] == ["result", "failure"]

    virtually(scenario())


def test_one_bad_key_fails_alone() -> None:
    async def scenario() -> None:
        api = Scripted(lambda target: Response(400, b"bad") if "P5" in keys(target) else response(owners(target)))
        found = await desk(api).answers(10)
        assert [one.status for one in found] == ["result"] * 5 + ["failure"] + ["result"] * 4
        assert len(api.requests) <= 9, "it is found by halves"

    virtually(scenario())


def test_one_item_that_is_nested_too_deeply_fails_alone() -> None:
    async def scenario() -> None:
        items = b'{"P0":{"name":"good"},"P1":' + b"[" * 400 + b"]" * 400 + b"}"
        found = await desk(Scripted(lambda _: Response(200, items))).answers(2)
        assert [(one.status, one.reason) for one in found] == [
            ("result", None),
            ("failure", "the item is nested too deeply"),
        ]

    virtually(scenario())


@pytest.mark.parametrize("found", ["text", 7, [1, 2], None])
def test_an_answer_without_a_list_fails_and_leaves_no_request_waiting(found: Any) -> None:
    async def scenario() -> None:
        ended = await desk(Scripted(lambda _: response(found))).answers(3)
        assert {one.status for one in ended} == ({"absence"} if isinstance(found, list) else {"failure"})

    virtually(scenario())


def test_a_bug_leaves_no_request_waiting() -> None:
    def broken(_: str) -> Response:
        raise ZeroDivisionError

    async def scenario() -> None:
        ended = await desk(Scripted(broken)).answers(3)
        assert {one.reason for one in ended} == {"the function raised ZeroDivisionError"}

    virtually(scenario())


def test_one_that_is_given_up_takes_no_other_with_it() -> None:
    async def scenario() -> None:
        one = desk(Scripted(lambda target: response(owners(target))))
        pending = [asyncio.create_task(one.answer(f"P{number}")) for number in range(3)]
        await asyncio.sleep(0.02 + LATENCY_S / 2)
        pending[0].cancel()
        ended = await asyncio.gather(*pending, return_exceptions=True)
        assert isinstance(ended[0], asyncio.CancelledError)
        assert [getattr(answer, "status", None) for answer in ended[1:]] == ["result"] * 2

    virtually(scenario())


def test_one_that_is_given_up_leaves_its_key_to_another_device() -> None:
    async def scenario() -> None:
        api = Scripted(lambda target: response(owners(target)))
        one = desk(api)
        pending = [asyncio.create_task(one.answer("P1")) for _ in range(2)]
        await asyncio.sleep(0.01)
        pending[0].cancel()
        assert (await pending[1]).status == "result"
        assert len(api.requests) == 1

    virtually(scenario())


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"path": "owners"}, "Write a path"),
        ({"path": "/owners?x=1"}, "Write a path"),
        ({"model": int}, "is no class that extends BaseModel"),
        ({"parameter": ""}, "Write the name of a query parameter"),
        ({"key": ""}, "Write the name of a field"),
        ({"size": 0}, "Write size=50"),
        ({"wait": timedelta(seconds=-1)}, "Write wait="),
    ],
)
def test_an_empty_batch_is_rejected(wrong: dict[str, Any], problem: str) -> None:
    right: dict[str, Any] = {"path": "/owners", "model": Owner, "parameter": "plate"}
    with pytest.raises(DeclarationError, match=problem):
        Batch(**right | wrong)
