"""The responses that devices and enrichments share."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from contracts import Api, Cache, Policy, enrichment
from services.enrichment.calls.response import Response
from tests.services.enrichment.calls.scripted import Desk, Scripted
from tests.services.enrichment.calls.virtual import virtually
from tests.services.enrichment.fleet import STALE, Street, owner, quote

POLICY = Policy(cache=Cache(results=10 * STALE))
ALL = Response(200, b'{"name": "Ann", "street": "Main Street", "price": 1.5}')


@enrichment(api="registry")
async def street(api: Api, plate: str) -> Street:
    """Reads otherwise what `owner` reads too."""
    return await api.get("/owners/{plate}", Street, plate=plate)


def test_an_answer_serves_other_devices_for_its_time() -> None:
    async def scenario() -> None:
        api = Scripted(lambda _: ALL)
        desk = Desk(api, POLICY)
        for _ in range(3):
            assert (await desk.answer("P1")).status == "result"
        await asyncio.sleep(9 * STALE.total_seconds())
        await desk.answer("P1")
        assert len(api.requests) == 1
        await asyncio.sleep(2 * STALE.total_seconds())
        await desk.answer("P1")
        assert len(api.requests) == 2

    virtually(scenario())


def test_an_enrichment_whose_answers_become_stale_takes_no_stale_one() -> None:
    async def scenario() -> None:
        api = Scripted(lambda _: ALL)
        desk = Desk(api, POLICY)
        await desk.answer("P1", "quote")
        await asyncio.sleep((STALE - timedelta(seconds=1)).total_seconds())
        await desk.answer("P1", "quote")
        assert len(api.requests) == 1
        await asyncio.sleep(2)
        await desk.answer("P1", "quote")
        assert len(api.requests) == 2

    virtually(scenario())


def test_enrichments_that_ask_the_same_share_the_answer_and_each_reads_its_own_model() -> None:
    async def scenario() -> None:
        api = Scripted(lambda _: ALL)
        desk = Desk(api, POLICY, enrichments=(owner, street, quote))
        pending = asyncio.gather(desk.answer("P1"), desk.answer("P1", "street"))
        assert [one.result for one in await pending] == [{"name": "Ann", "rating": 1.0}, {"street": "Main Street"}]
        assert len(api.requests) == 1

    virtually(scenario())


def test_an_answer_that_does_not_fit_the_model_of_one_enrichment_fails_no_other() -> None:
    async def scenario() -> None:
        api = Scripted(lambda _: Response(200, b'{"street": "Main Street"}'))
        desk = Desk(api, Policy(attempts=2), enrichments=(owner, street, quote))
        wanted = ["owner", "owner", "street", "owner", "street"]
        found = await asyncio.gather(*(desk.answer("P1", enrichment) for enrichment in wanted))
        assert [one.result for one in found if one.status == "result"] == [{"street": "Main Street"}] * 2
        assert [one.status for one in found].count("failure") == 3
        assert len(api.requests) == 2 + 1, "the enrichments of one model share their calls"

    virtually(scenario())


def test_an_answer_that_fits_another_model_only_is_not_the_last_word() -> None:
    async def scenario() -> None:
        bodies = iter((b'{"name": "Ann"}', ALL.body))
        api = Scripted(lambda _: Response(200, next(bodies)))
        desk = Desk(api, POLICY, enrichments=(owner, street, quote))
        assert (await desk.answer("P1")).status == "result"
        assert (await desk.answer("P1", "street")).result == {"street": "Main Street"}
        assert len(api.requests) == 2

    virtually(scenario())
