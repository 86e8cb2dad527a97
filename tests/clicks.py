"""Applications with windowed states, and streams for them: what the fold and the job are compared on."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import orjson
from pydantic import BaseModel

from contracts import (
    Api,
    Application,
    BaseEvent,
    Count,
    Distinct,
    Enriched,
    Latest,
    Max,
    State,
    Sum,
    Topics,
    composite_key,
    enrichment,
)
from contracts.records.record import Record, timestamp_ms

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
WEIRD = ("JFK", "a:b", "\\", ":", "ä", "日本", "𝄞@2026", "x" * 40, "\\:")


class Click(BaseEvent):
    """A click on a page: an event without a device and without an initial event."""

    click: str
    page: str
    country: str
    ms: int | None = None


class Identified(Click):
    """A click with an id, by which duplicates are found."""

    event_id: str


class Owner(BaseModel):
    """The owner of a page."""

    name: str


class Counts(State, key="page", window=HOUR):
    """The state of the clicks of one window."""

    clicks: Annotated[int, Count()]
    timed: Annotated[int, Count(of="ms")]
    ms: Annotated[int, Sum()]
    slowest: Annotated[int | None, Max(of="ms")]
    last_ms: Annotated[int | None, Latest(of="ms")]
    last: Annotated[datetime | None, Max(of="ts")]
    countries: Annotated[list[str], Distinct(20, of="country")]


class Pairs(Counts, key=("country", "page"), window=HOUR, offset=7 * MINUTE, grace=3 * MINUTE):
    """The same by country and page."""


class Hops(Counts, key=("page", "country"), window=HOUR, every=15 * MINUTE, offset=timedelta(seconds=90)):
    """The same in windows of an hour, of which one starts every quarter of an hour."""


@enrichment(api="registry")
async def owner(api: Api, page: str) -> Owner:
    """The owner of the page."""
    return await api.get("/owners/{page}", Owner, page=page)


def application(state: type[State] = Counts, **options: Any) -> Application:
    """An application with this state, on topics of its own."""
    replay = os.environ.get("CLICKS_REPLAY", "1") == "1"
    topics = Topics(prefix=os.environ.get("CLICKS_PREFIX", ""), replay=replay, partitions=2)
    return Application(**{"name": "clicks", "event": Identified, "state": state, "topics": topics, **options})


def owned_by(offset: timedelta) -> Application:
    """The application that asks for the owner of a page, with windows that start at this time of each half-hour."""

    class Owned(State, key="page", window=HOUR, every=30 * MINUTE, offset=offset):
        clicks: Annotated[int, Count()]
        page: Annotated[str | None, Latest()]
        owner: Annotated[Owner | None, Enriched()]

    return application(Owned, enrichments=(owner,))


hops = application(Hops)
owned = owned_by(int(os.environ.get("CLICKS_OFFSET", "0")) * MINUTE)


def click_record(click: dict[str, Any], offset: int = 0, stamp: datetime = NOW, key: bytes | None = None) -> Record:
    """A click as its topic has it, by default without a key."""
    return Record("events", 0, offset, timestamp_ms(stamp), key, orjson.dumps(click))


def random_clicks(seed: int, count: int) -> list[Record]:
    """Clicks of two hours, a quarter of them twice: some late, some partly late, some ahead of the clock."""
    rnd = random.Random(seed)
    once = [_random_click(rnd, number) for number in range(count)]
    return rnd.sample(once, count) + rnd.sample(once, count // 4)


def random_answers(seed: int, count: int) -> list[Record]:
    """Answers for windows of `owned`, some of them late, and some for windows that do not exist."""
    rnd = random.Random(seed)
    return [_random_answer(rnd, number) for number in range(count)]


def _random_click(rnd: random.Random, number: int) -> Record:
    stamp = NOW + rnd.randrange(-60, 60) * MINUTE
    behind = rnd.choice((0, 0, 5, 40, 65, 69, 75, 100, 140)) * MINUTE + timedelta(microseconds=rnd.randrange(10**8))
    ahead = rnd.choice((10, 59, 60, 61, 600)) * timedelta(seconds=1)
    click = {
        "click": f"c{number}",
        "event_id": str(number),
        "page": rnd.choice(WEIRD),
        "country": rnd.choice(("US", "a:b", "", "y" * 459) if rnd.random() < 0.2 else ("US", "DE")),
        "ts": stamp + ahead if rnd.random() < 0.1 else stamp - behind,
    }
    timed = {"ms": rnd.randrange(10**6)} if rnd.random() < 0.7 else {}
    return click_record(click | timed, number, stamp, rnd.choice((None, b"k", b"\xff")))


def _random_answer(rnd: random.Random, number: int) -> Record:
    page, start = rnd.choice(WEIRD), NOW + rnd.randrange(-4, 2) * 30 * MINUTE
    answer = {
        "device_id": composite_key(page),
        "first_seen": start + (timedelta(microseconds=1) if rnd.random() < 0.1 else timedelta(0)),
        "enrichment": "owner",
        "epoch": rnd.choice((0, 1)),
        "version": rnd.randrange(1, 5),
        "status": "result",
        "ts": NOW + number * timedelta(seconds=1),
        "fingerprint": f"f{number}",
        "result": {"owner": {"name": f"n{number}"}},
    }
    stamp = NOW + rnd.randrange(-60, 60) * MINUTE
    key = rnd.choice((page, page, page, "other")).encode()
    return Record("feedback", 0, number, timestamp_ms(stamp), key, orjson.dumps(answer))
