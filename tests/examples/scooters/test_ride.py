"""A ride in memory: no broker, no Spark, no city."""

from datetime import UTC, datetime, timedelta

from examples.scooters.application import Ping, app
from stateloop import AbsentError
from stateloop.testing import Clock, FakeApi, Loop

START = datetime(2026, 5, 1, 8, tzinfo=UTC)
OAK = {"street": "Oak Street", "district": "North"}


def ping(number: int, **fields: float) -> Ping:
    return Ping(device_id="s1", event_id=str(number), first_seen=START, ts=START, **fields)


async def test_a_place_leads_to_its_rule_and_half_an_hour_later_to_the_new_one() -> None:
    city = FakeApi({"/reverse": OAK, "/districts/North/rules": [{"limit_kmh": 20.0}, {"limit_kmh": 10.0}]})
    clock = Clock(START)
    loop = Loop(app, apis={"city": city}, clock=clock)
    loop.send(ping(1, speed=12.0))
    assert loop.calls == [], "it has not said where it is"
    loop.send(ping(2, lat=52.5, lon=13.4))
    await loop.settle()
    assert loop.calls == ["place", "rule"]
    assert loop.result("s1", "rule") == {"limit_kmh": 20.0}
    clock.forward(timedelta(minutes=31))
    loop.send(ping(3, speed=18.0))
    await loop.settle()
    assert loop.result("s1", "rule") == {"limit_kmh": 10.0}
    assert loop.snapshot("s1").state["fastest"] == 18.0


async def test_where_the_city_knows_no_place_there_is_no_rule() -> None:
    loop = Loop(app, apis={"city": FakeApi({"/reverse": AbsentError("at sea")})}, clock=Clock(START))
    loop.send(ping(1, lat=54.5, lon=13.9))
    await loop.settle()
    assert loop.statuses("s1") == {"place": "absence", "rule": "skipped"}
