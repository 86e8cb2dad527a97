"""An event and results with a constraint at every depth, and records on both sides of each."""

from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

import orjson
from pydantic import AwareDatetime, BaseModel, Field

from contracts import Api, Application, Count, Enriched, Event, State, enrichment
from tests.hostile import GOOD, TIMES

Letter = Literal["a", "b", "it's", "back\\slash"]


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


class Position(BaseModel):
    lat: float = Field(ge=-90, le=90)
    lon: float | None = Field(default=None, gt=-180.5, lt=180.5)


class Route(BaseModel):
    start: Position
    end: Position | None = None
    name: str | None = Field(default=None, min_length=2, max_length=3)
    stops: list[Position] | None = None


class Bounded(Event):
    route: Route | None = None
    speed: Annotated[float, Field(ge=0, le=1.5)] | None = None
    level: Annotated[int, Field(ge=0, lt=10)] | None = None
    huge: int | None = Field(default=None, le=10**30, ge=-(2**63) + 1)
    letters: list[Letter] | None = None
    colour: Colour | None = None
    few: list[str] | None = Field(default=None, min_length=1, max_length=2)
    numbers: list[Annotated[float, Field(lt=100)]] | None = None
    grid: list[list[float]] | None = Field(default=None, max_length=2)
    plain: list[str] | None = None
    tags: dict[str, str] | None = None
    weights: dict[str, float] | None = None


class Found(BaseModel):
    where: Position
    since: AwareDatetime | None = None
    visits: list[AwareDatetime] = Field(default_factory=list)
    noted: str | None


class Known(State, lifetime=timedelta(hours=1)):
    events: Annotated[int, Count()]
    found: Annotated[Found | None, Enriched()]


@enrichment(api="a")
async def found(api: Api, events: int) -> Found:
    return await api.get("/{n}", Found, n=events)


app = Application(name="bounded", event=Bounded, state=Known, enrichments=(found,))

POSITIONS = [
    "{}", "null", "1", "[]", '{"lat":90}', '{"lat":-90.0}', '{"lat":90.00000000000001}', '{"lat":500}', '{"lat":1e400}',
    '{"lat":-1e400}', '{"lat":null}', '{"lat":"1"}', '{"lat":1,"lon":180.5}', '{"lat":1,"lon":180.4}',
    '{"lat":1,"lon":null,"x":{}}', '{"lat":1,"lon":1e400}', '{"lat":91,"lat":1}', '{"lat":1,"lat":91}',
    '{"lat":1,"lat":null}', '{"lat":"x","lat":1}', '{"lat":1,"lat":"x"}', '{"lon":1}', '{"LAT":1}',
]  # fmt: skip
VALUES = {
    "speed": ["0", "-0", "-0.0", "1.5", "1.6", "-3", "1e400", "-1e-400", "null"],
    "level": ["0", "9", "10", "-1", "-0", "1.0", "null"],
    "huge": ["0", "-9223372036854775808", "-9223372036854775807", "9223372036854775807", "9223372036854775808"],
    "letters": ["[]", '["a"]', '["a","zzz"]', '["zzz"]', '["a",null]', "[null]", '["it\'s"]', '["back\\\\slash"]'],
    "colour": ['"red"', '"RED"', '""', "null", "1"],
    "few": ["[]", "[1]", '["a","b"]', '["a","b","c"]', "[null,null]", "[null,null,null]", "null", "{}"],
    "numbers": ["[]", "[1,99.9]", "[100]", "[1,1e400]", "[-1e400]", "[null]", "[null,100]", '["1"]'],
    "grid": ["[]", "[[]]", "[[1],[2,3]]", "[[1],[2],[3]]", "[[1,1e400]]", "[null,[1]]", "[[null]]", "[1]"],
    "plain": ["[]", "[null]", '["é","\\u00e9",1,1.50,-0,true,{"a":1},[1]]', "[[]]"],
    "tags": ["{}", '{"a":null}', '{"a":"1","a":"2"}', '{"":"x","é":"\\ud83d\\ude00"}', '{"a":1}', "[]"],
    "weights": ["{}", '{"a":1}', '{"a":1e400}', '{"a":1e400,"a":1}', '{"a":"x"}', '{"a":"x","a":1}', '{"a":null}'],
}  # fmt: skip
REPEATED = [
    '"level":1,"level":2', '"level":"x","level":1', '"level":1,"level":"x"', '"level":1,"level":null',
    '"speed":9,"speed":1', '"speed":1,"speed":9', '"route":{},"route":null', '"level":null,"level":1',
    '"plain":["a","b"],"plain":["c"]', '"route":{"start":{"lat":1},"name":"ab"},"route":{"start":{"lat":2}}',
]  # fmt: skip


def events() -> Iterator[bytes]:
    """Events with one field of each value."""
    for position in POSITIONS:
        yield from _events("route", f'{{"start":{position}}}', f'{{"start":{{"lat":1}},"end":{position}}}', position)
        yield from _events("route", *(f'{{"start":{{"lat":1}},"stops":[{p}]}}' for p in (position, f"null,{position}")))
    for name in (
        '""',
        '"a"',
        '"ab"',
        '"abc"',
        '"abcd"',
        '"😀😀"',
        '"😀😀😀😀"',
        "12",
        "1234",
        "null",
        "{}",
        '{ "a": 1 }',
    ):
        yield from _events("route", f'{{"start":{{"lat":1}},"name":{name}}}')
    for field, literals in VALUES.items():
        yield from _events(field, *literals)
    yield from (_joined(GOOD, repeated) for repeated in REPEATED)


def answers() -> Iterator[bytes]:
    """Answers with one result each."""
    right = '"where":{"lat":1},"noted":"x"'
    for result in ("null", "{}", '{"where":{"lat":1}}', f"{{{right}}}", *(f'{{"where":{p}}}' for p in POSITIONS)):
        yield _answer(result)
    for time in TIMES:
        yield _answer(f'{{{right},"since":"{time}"}}')
        yield _answer(f'{{{right},"visits":["2026-01-01T00:00:00Z","{time}"]}}')
    yield from (_answer(f'{{{right},"visits":{visits}}}') for visits in ("[]", "[null]", "null", "[1]", "1"))


def _events(field: str, *literals: str) -> Iterator[bytes]:
    yield from (_joined(GOOD, f'"{field}":{literal}') for literal in literals)


def _answer(result: str) -> bytes:
    status = {"status": "result", "version": 1, "enrichment": "found", "fingerprint": "f"}
    return _joined(
        {key: GOOD[key] for key in ("device_id", "first_seen", "ts")} | status, f'"result":{{"found":{result}}}'
    )


def _joined(fields: dict[str, Any], more: str) -> bytes:
    return orjson.dumps(fields)[:-1] + b"," + more.encode() + b"}"
