"""The application's own events, enrichments and server give the result of the oracle, for every flight of a day."""

from collections import Counter
from datetime import date, timedelta
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from contracts.planning.plan import EnrichmentStatus, enrichment_status, settled
from contracts.wire import Snapshot
from examples.flights.application import app
from examples.flights.reference.server import application
from examples.flights.reference.settings import ReferenceSettings
from examples.flights.stream import stream
from tests.examples.flights.agreement import differences
from tests.examples.flights.loop import NOW, ServedApi, run
from tests.examples.flights.oracle import expected

FIRST = date(2013, 1, 1)
CLOCKS_CHANGE = (date(2013, 3, 10), date(2013, 11, 3))


async def loop(day: date) -> dict[str, Snapshot]:
    async with TestClient(TestServer(application(ReferenceSettings()))) as client:
        return await run(app, ServedApi(client), stream([day]))


def require_agreement(snapshots: dict[str, Snapshot], wanted: dict[str, dict[str, Any]]) -> None:
    """Each flight has the state of the oracle, and needs no further call."""
    assert snapshots.keys() == wanted.keys()
    found = {device: differences(wanted[device], snapshot) for device, snapshot in snapshots.items()}
    assert {device: wrong for device, wrong in found.items() if wrong} == {}
    assert all(settled(app, snapshot, NOW) for snapshot in snapshots.values())


@pytest.mark.slow
@pytest.mark.parametrize("day", [CLOCKS_CHANGE[0], pytest.param(CLOCKS_CHANGE[1], marks=pytest.mark.full)])
async def test_every_flight_of_a_day_on_which_clocks_change_has_the_state_of_the_oracle(day: date) -> None:
    require_agreement(await loop(day), expected(day))


@pytest.mark.slow
async def test_the_first_day_is_that_of_the_oracle_and_has_each_status_of_an_enrichment() -> None:
    snapshots = await loop(FIRST)
    require_agreement(snapshots, expected(FIRST))
    counts: Counter[tuple[str, EnrichmentStatus | str]] = Counter()
    for snapshot in snapshots.values():
        for enrichment in app.enrichments:
            answer = snapshot.enrichments.get(enrichment.name)
            counts[enrichment.name, answer.status if answer else enrichment_status(app, enrichment, snapshot, NOW)] += 1
    assert len(snapshots) == 842
    assert counts["aircraft", "absence"] == 144
    assert counts["aircraft", EnrichmentStatus.WAITING] == 4  # cancelled
    assert counts["weather", "absence"] == 28
    assert counts["dest_airport", "absence"] == counts["route", "skipped"] == 26
    assert counts["performance", "result"] == 669
    assert counts["performance", "skipped"] > 140


def test_the_oracle_would_notice_a_change() -> None:
    day = expected(FIRST)
    state = day["2013-01-01/UA/1545/EWR-IAH"]["state"]
    snapshot = Snapshot.model_validate(
        {
            "device_id": "d",
            "first_seen": "2013-01-01T08:15:00Z",
            "version": 1,
            "as_of": "2013-01-01T08:15:00Z",
            "state": state | {"delay": 12, "landed_at": "2013-01-01T09:30:00.000-05:00"},
        }
    )
    assert differences({"state": state, "enrichments": {}}, snapshot) == ["/state/delay: expected 11, found 12"]


def test_windows_are_long_enough_for_a_landing_and_its_feedback() -> None:
    assert app.state.lifetime > timedelta(hours=34, minutes=42)
