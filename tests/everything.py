"""An application with every reducer, and streams for it: what the fold and the job are compared on."""

import os
import random
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import orjson
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from contracts import (
    Api,
    Application,
    Bitmap,
    Collect,
    Count,
    Coverage,
    Distinct,
    DistinctApprox,
    Earliest,
    Enriched,
    Event,
    Histogram,
    Latest,
    Max,
    Mean,
    Min,
    Quantiles,
    Rate,
    Recent,
    State,
    Sum,
    Topics,
    TopK,
    ValueCount,
    Variance,
    enrichment,
    field,
)
from contracts.records.record import Record, timestamp_ms

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
EPOCH = 2
"""The epoch of the states that tests fold, and merge on Spark."""


class Position(BaseModel):
    """A model inside an event."""

    lat: float
    lon: float | None = None


class Thing(Event):
    """An event with a field of each type."""

    speed: float | None = None
    load: int | None = Field(default=None, ge=-100, le=100_000)
    name: str | None = None
    on: bool | None = None
    at: Position | None = None
    due: datetime | None = None


class Owner(BaseModel):
    """The result of one enrichment."""

    name: str
    since: datetime | None = None
    cars: list[str] = Field(default_factory=list)


class Score(BaseModel):
    """The result of the other one."""

    score: float


class Everything(State, lifetime=timedelta(hours=1)):
    """One field for each reducer."""

    events: Annotated[int, Count()]
    speeds: Annotated[int, Count(of="speed")]
    total: Annotated[float, Sum(of="speed")]
    loads: Annotated[int, Sum(of="load")]
    slowest: Annotated[float | None, Min(of="speed")]
    first_name: Annotated[str | None, Min(of="name")]
    fastest: Annotated[float | None, Max(of="speed")]
    last_ts: Annotated[datetime | None, Max(of="ts")]
    mean: Annotated[float | None, Mean(of="speed")]
    mean_load: Annotated[float | None, Mean(of="load")]
    variance: Annotated[float | None, Variance(of="speed")]
    speed: Annotated[float | None, Latest()]
    name: Annotated[str | None, Latest()]
    on: Annotated[bool | None, Latest()]
    at: Annotated[Position | None, Latest()]
    due: Annotated[datetime | None, Latest()]
    initial: Annotated[str | None, Earliest(of="name")]
    recent: Annotated[list[float], Recent(3, of="speed")]
    recent_at: Annotated[list[Position], Recent(2, of="at")]
    collected: Annotated[list[str], Collect(4, of="name")]
    names: Annotated[list[str], Distinct(3, of="name")]
    about: Annotated[int, DistinctApprox(of="name")]
    loads_seen: Annotated[list[int], Bitmap(130, of="load")]
    histogram: Annotated[list[int], Histogram((-1.5, 0.0, 10.0), of="speed")]
    median: Annotated[list[float], Quantiles((0.0, 0.5, 1.0), of="speed", accuracy=10_000)]
    rate: Annotated[float | None, Rate()]
    covered: Annotated[list[list[int]], Coverage(timedelta(seconds=1), of="load", unit=timedelta(milliseconds=100))]
    top_names: Annotated[list[ValueCount[str]], TopK(2, of="name")]
    fast: Annotated[int, Count(where=field("speed") > 100)]
    last_on: Annotated[float | None, Latest(of="speed", where=(field("on") == True) | field("load").is_null())]  # noqa: E712
    owner: Annotated[Owner | None, Enriched()]
    score: Annotated[Score | None, Enriched()]


class Little(State, lifetime=timedelta(hours=1)):
    """A state for tests of what no reducer matters to: a batch of it takes a fraction of the CPU."""

    events: Annotated[int, Count()]
    name: Annotated[str | None, Latest()]
    fastest: Annotated[float | None, Max(of="speed")]
    owner: Annotated[Owner | None, Enriched()]
    score: Annotated[Score | None, Enriched()]


class Various(Little, lifetime=timedelta(hours=1)):
    """A state with a field for each kind of buffer: also those that only Spark can read."""

    mean: Annotated[float | None, Mean(of="speed")]
    recent: Annotated[list[float], Recent(3, of="speed")]
    names: Annotated[list[str], Distinct(3, of="name")]
    about: Annotated[int, DistinctApprox(of="name")]
    loads_seen: Annotated[list[int], Bitmap(130, of="load")]
    median: Annotated[list[float], Quantiles((0.0, 0.5, 1.0), of="speed", accuracy=10_000)]
    top_names: Annotated[list[ValueCount[str]], TopK(2, of="name")]


KEPT_FOR = Everything.lifetime + Everything.grace


@enrichment(api="registry")
async def owner(api: Api, name: str) -> Owner:
    """The owner of the thing."""
    return await api.get("/owners/{name}", Owner, name=name)


@enrichment(api="registry")
async def score(api: Api, owner: Owner, fastest: float | None) -> Score:
    """Request the score of the owner."""
    return await api.get("/scores/{owner}", Score, owner=owner.name, fastest=fastest or 0.0)


def application(state: type[State] = Everything, **options: Any) -> Application:
    """The application, on topics of its own."""
    topics = Topics(
        prefix=os.environ.get("EVERYTHING_PREFIX", ""), replay=os.environ.get("EVERYTHING_REPLAY", "1") == "1"
    )
    return Application(
        name="everything",
        event=Thing,
        state=state,
        enrichments=(owner, score),
        topics=topics,
        **options,
    )


app, little, various = (application(state) for state in (Everything, Little, Various))

eighths = st.integers(-800, 8_000).map(lambda n: n / 8)
"""Floats whose sums are exact in any order."""
times = st.integers(0, 20).map(lambda seconds: NOW - timedelta(seconds=seconds, microseconds=seconds))
texts = st.sampled_from(["", "a", "b", "Z", "ä", "日本", "𝄞", "￿", '"quoted"', "a\nb", "\\"])
positions = st.fixed_dictionaries({"lat": eighths}, optional={"lon": eighths})
events = st.fixed_dictionaries(
    {
        "device_id": st.sampled_from(["d1", "d2"]),
        "event_id": st.integers(0, 30).map(str),
        "first_seen": st.sampled_from([NOW - timedelta(minutes=5), NOW - timedelta(minutes=4)]),
        "ts": times,
    },
    optional={
        "speed": eighths,
        "load": st.integers(-100, 200),
        "name": texts,
        "on": st.booleans(),
        "at": positions,
        "due": times,
    },
)
answers = st.fixed_dictionaries(
    {
        "device_id": st.sampled_from(["d1", "d2"]),
        "first_seen": st.sampled_from([NOW - timedelta(minutes=5), NOW - timedelta(minutes=4)]),
        "epoch": st.integers(0, EPOCH),
        "version": st.integers(1, 5),
        "ts": times,
        "fingerprint": st.sampled_from(["f1", "f2"]),
        "spent": st.none() | st.integers(0, 3),
        "answer": st.sampled_from(
            [
                ("owner", "result", {"owner": {"name": "Ann", "cars": ["x", "y"]}}),
                ("owner", "result", {"owner": {"name": "Bob", "since": "2020-01-01T00:00:00Z", "cars": []}}),
                ("owner", "absence", None),
                ("score", "failure", None),
                ("score", "skipped", None),
                ("score", "result", {"score": {"score": 1.5}}),
            ]
        ),
    }
)


def event_record(event: dict[str, Any], offset: int = 0) -> Record:
    """An event as its topic has it."""
    return Record("events", 0, offset, timestamp_ms(NOW), event["device_id"].encode(), orjson.dumps(event))


def answer_record(answer: dict[str, Any], offset: int = 0) -> Record:
    """An answer as its topic has it."""
    name, status, result = answer["answer"]
    value = {key: value for key, value in answer.items() if key != "answer"}
    value |= {"enrichment": name, "status": status} | ({"result": result} if result else {"reason": "why not"})
    return Record("feedback", 0, offset, timestamp_ms(NOW), answer["device_id"].encode(), orjson.dumps(value))


def random_event(rnd: random.Random, device: str, number: int) -> dict[str, Any]:
    """An event with some of its fields, its numbers' sums exact in any order."""
    fields: dict[str, Any] = {
        "speed": rnd.randrange(-800, 8_000) / 8,
        "load": rnd.randrange(-100, 200),
        "name": rnd.choice(["", "a", "b", "Z", "ä", "日本", "𝄞", "￿", '"quoted"', "a\nb", "\\"]),
        "on": rnd.random() < 0.5,
        "at": {"lat": rnd.randrange(90)} | ({"lon": rnd.random()} if rnd.random() < 0.5 else {}),
        "due": NOW - timedelta(seconds=rnd.randrange(20), microseconds=rnd.randrange(3)),
    }
    identity = {"device_id": device, "event_id": str(number), "first_seen": NOW - timedelta(minutes=5)}
    known = {name: value for name, value in fields.items() if rnd.random() < 0.6}
    return identity | {"ts": NOW - timedelta(seconds=rnd.randrange(20), microseconds=rnd.randrange(3))} | known


def random_answer(rnd: random.Random, device: str, number: int) -> dict[str, Any]:
    """An answer of either enrichment; none with the identity of another but with another content."""
    owner = {"owner": {"name": f"n{rnd.randrange(9)}", "cars": ["x"] * rnd.randrange(3)}}
    return {
        "device_id": device,
        "first_seen": NOW - timedelta(minutes=5),
        "epoch": rnd.choice([None, 0, 1, EPOCH]),
        "version": 1 + rnd.randrange(5),
        "ts": NOW - timedelta(seconds=rnd.randrange(20)),
        "fingerprint": f"f{number}",
        "spent": rnd.choice([None, 1, 2]),
        "answer": rnd.choice(
            [
                ("owner", "result", owner),
                ("owner", "absence", None),
                ("score", "result", {"score": {"score": 0.5}}),
                ("score", "skipped", None),
            ]
        ),
    }


def random_stream(seed: int, *, devices: int, events: int, answers: int) -> tuple[list[Record], list[Record]]:
    """Records of both topics, a quarter of them twice, in no order."""
    rnd = random.Random(seed)
    names = [f"d{number}" for number in range(devices)]
    sent = [event_record(random_event(rnd, rnd.choice(names), number), number) for number in range(events)]
    answered = [answer_record(random_answer(rnd, rnd.choice(names), number), number) for number in range(answers)]
    sent, answered = ([*once, *rnd.sample(once, len(once) // 4)] for once in (sent, answered))
    return rnd.sample(sent, len(sent)), rnd.sample(answered, len(answered))
