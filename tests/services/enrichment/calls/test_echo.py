"""ResponseCache that name something else than the call requested, on their way through the calling side."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import BaseModel

from contracts import Api, Batch, Breaker, Echo, Policy, enrichment
from contracts.metrics import worker as metrics
from services.enrichment.calls.response import Response
from tests.services.enrichment.calls.scripted import Desk, Scripted
from tests.services.enrichment.calls.virtual import virtually
from tests.services.enrichment.fleet import Owner, Quote, quote, street

if TYPE_CHECKING:
    from collections.abc import Callable

POLICY = Policy(attempts=3, breaker=Breaker(failures=1, share=0.01))
ANOTHER = "the response answers another request"


class Named(BaseModel):
    plate: Annotated[str, Echo()]
    name: str


@enrichment(api="registry")
async def single(api: Api, plate: str) -> Owner:
    return Owner(name=(await api.get("/owners/{plate}", Named, plate=plate)).name)


@enrichment(api="registry")
async def batched(api: Api, plate: str) -> Owner:
    return Owner(name=(await api.get_one(BATCH, plate)).name)


BATCH = Batch("/owners", Named, parameter="id", key="plate", wait=timedelta(0))


def item(plate: str) -> dict[str, str]:
    return {"plate": plate, "name": f"owner of {plate}"}


def desk(one: Any, *answers: Any) -> tuple[Desk, Scripted, list[int]]:
    """The fleet with one way to ask for owners, these answers in turn, and the calls whose connection was dropped."""
    left = list(answers)
    dropped: list[int] = []

    def answer(_: str) -> Response:
        number = len(api.requests)
        found = left.pop(0) if len(left) > 1 else left[0]
        return Response(200, json.dumps(found).encode(), drop=lambda: dropped.append(number))

    api = Scripted(answer)
    declared = enrichment(api="registry")(_renamed(one.function))
    return Desk(api, POLICY, enrichments=(declared, street, quote)), api, dropped


def _renamed(function: Callable[..., Any]) -> Callable[..., Any]:
    async def owner(api: Api, plate: str) -> Owner:
        found: Owner = await function(api, plate=plate)
        return found

    owner.__annotations__ = {"api": Api, "plate": str, "return": Owner}
    return owner


@pytest.mark.parametrize(
    ("one", "right", "wrong"),
    [
        (single, item("P1"), item("P2")),
        (batched, [item("P1")], [item("P2")]),
        (batched, [item("P1")], [item("P1"), item("P2")]),
        (batched, {"P1": item("P1")}, {"P1": item("P2")}),
    ],
    ids=["one", "list", "list with another", "object"],
)
def test_a_mismatch_is_tried_again_on_another_connection_and_then_a_failure(one: Any, right: Any, wrong: Any) -> None:
    async def scenario() -> None:
        own, api, dropped = desk(one, wrong, right)
        assert (await own.answer("P1")).result == {"name": "owner of P1", "rating": 1.0}
        assert (len(api.requests), dropped) == (2, [1])
        own, api, dropped = desk(one, wrong)
        found = await own.answer("P1")
        assert (found.status, found.attempts, found.response) == ("failure", POLICY.attempts, None)
        assert (found.reason or "").startswith(ANOTHER)
        assert dropped == [1, 2, 3]
        assert own.counts.get(metrics.CALLS, "registry", "owner", "retryable") == 3

    virtually(scenario())


def test_an_answer_that_was_refused_is_not_kept_for_others() -> None:
    async def scenario() -> None:
        wrong = [item("P2")] * POLICY.attempts
        own, api, _ = desk(single, *wrong, item("P1"))
        assert (await own.answer("P1")).status == "failure"
        assert (await own.answer("P1")).status == "result"
        assert len(api.requests) == POLICY.attempts + 1

    virtually(scenario())


def test_an_item_that_is_missing_is_still_an_absence() -> None:
    async def scenario() -> None:
        own, _, dropped = desk(batched, [])
        assert ((await own.answer("P1")).status, dropped) == ("absence", [])

    virtually(scenario())


def test_other_models_may_be_given_more_items_than_were_requested() -> None:
    async def scenario() -> None:
        plain = Batch("/owners", Owner, parameter="id", key="plate", wait=timedelta(0))

        @enrichment(api="registry")
        async def owner(api: Api, plate: str) -> Owner:
            return await api.get_one(plain, plate)

        own, _, dropped = desk(owner, [item("P1"), item("P2")])
        assert ((await own.answer("P1")).status, dropped) == ("result", [])

    virtually(scenario())


def test_a_kept_answer_that_another_model_took_is_requested_again() -> None:
    @enrichment(api="registry")
    async def owner(api: Api, plate: str) -> Owner:
        return await api.get("/owners/{plate}", Owner, plate=plate)

    @enrichment(api="registry")
    async def quote(api: Api, plate: str) -> Quote:
        await api.get("/owners/{plate}", Named, plate=plate)
        return Quote(price=1.5)

    async def scenario() -> None:
        own, api, _ = desk(owner, item("P2"), item("P1"))
        own = Desk(api, POLICY, enrichments=(owner, street, quote))
        assert (await own.answer("P1")).result == {"name": "owner of P2", "rating": 1.0}, "nothing checks this one"
        assert (await own.answer("P1", "quote")).result == {"price": 1.5}
        assert len(api.requests) == 2

    virtually(scenario())
