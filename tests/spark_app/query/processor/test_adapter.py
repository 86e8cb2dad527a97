"""The adapter around a processor: what it gives, stores and undoes, without Spark."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from pydantic import BaseModel
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues
from pyspark.sql.streaming.tws_tester import TwsTester
from pyspark.sql.types import LongType, StringType, StructType

from contracts import State
from contracts.types.quantize import EPOCH, MICROSECOND
from contracts.wire import DeadLetter
from spark_app.query.processor.adapter import DELTA, RESULT, ProcessorAdapter
from spark_app.query.processor.handle import RESERVED
from spark_app.query.processor.step import layout
from spark_app.query.processor.stored import StoredWindow
from tests import processed
from tests.processed import PAUSE_MS, POISON, Tally, Visits

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
PAGE = "page"


def longs(*names: str) -> StructType:
    """A struct of whole numbers."""
    made = StructType()
    for name in names:
        made.add(name, LongType())
    return made


COUNTRY = StructType().add("country", StringType())
TALLY = {
    "sums": (longs("clicks", "timed", "ms", "slowest", "last"),),
    "timed": (longs("ts", "ms"),),
    "countries": (COUNTRY, longs("clicks")),
}
VISITS = {
    "page": (longs("clicks").add("owner", StringType()),),
    "countries": (COUNTRY, longs("clicks")),
    "last": (StructType().add("click", StringType()),),
    "recent": (COUNTRY,),
}


class Fit(BaseModel):
    slope: float


class Fitted(State, key="page", window=timedelta(hours=1)):
    """A state with a model in it."""

    fit: Fit


class Part(BaseModel):
    a: int | None = None
    b: int | None = None


class Place(BaseModel):
    street: str | None = None
    limit: int | None = None
    parts: list[Part] | None = None


class Window:
    """One window of a processor, and the clock."""

    def __init__(self, adapter: ProcessorAdapter) -> None:
        self.tester = TwsTester(adapter, timeMode="ProcessingTime")
        self.tester.setProcessingTime(milliseconds(START))

    def send(self, *deltas: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the results of a batch with these deltas."""
        rows = [Row(**{DELTA: orjson.dumps(delta).decode()}) for delta in deltas]
        return [orjson.loads(row[RESULT]) for row in self.tester.test(PAGE, rows)]

    def wait_until(self, time: datetime) -> list[dict[str, Any]]:
        """Return the results of the timers up to this time."""
        rows: Any = self.tester.setProcessingTime(milliseconds(time))
        return [orjson.loads(row[RESULT]) for row in rows]

    def stored(self) -> dict[str, Any]:
        """Return what the pipeline has stored; empty for none."""
        content = self.tester.peekValueState(RESERVED, PAGE)
        return {} if content is None else orjson.loads(content[0])

    def content(self) -> Any:
        """Return all that is stored of the tally."""
        kinds = self.tester.peekValueState, self.tester.peekListState, self.tester.peekMapState
        return [peek(name, PAGE) for peek, name in zip(kinds, TALLY, strict=True)], self.stored()


def click(number: int, ms: int | None = None, *, country: str = "de", offset: int | None = None) -> dict[str, Any]:
    """A click some seconds after the window's start, as the step gives it."""
    event = {"ts": (START + number * SECOND).isoformat(), "click": str(number), "page": PAGE, "country": country}
    placed = {"topic": "events", "partition": 0, "offset": number if offset is None else offset}
    return delta(number) | placed | {"event": event | ({} if ms is None else {"ms": ms})}


def answer(number: int, version: int, name: str) -> dict[str, Any]:
    """An answer of the enrichment."""
    content = {"version": version, "status": "result", "ts": START.isoformat(), "fingerprint": "f", "epoch": 0}
    answers = {"owner": content | {"result": {"name": name}}}
    return delta(number) | {"topic": "feedback", "partition": 0, "offset": number, "event": {}, "answers": answers}


def delta(number: int) -> dict[str, Any]:
    """The parts of each delta."""
    time = microseconds(START + number * SECOND)
    return {"device_id": PAGE, "first_seen": microseconds(START), "record_time": time}


def tally() -> Window:
    """A window of the tally."""
    return Window(ProcessorAdapter(Tally, TALLY, layout(processed.tallies, epoch=7)))


def visit() -> Window:
    """A window of the visits."""
    return Window(ProcessorAdapter(Visits, VISITS, layout(processed.app, epoch=7)))


def test_a_batch_gives_one_result_with_the_last_state() -> None:
    window = tally()
    (result,) = window.send(click(2, 20), click(1, 10), click(3))
    assert result["version"] == 3
    assert result["as_of"] == microseconds(START + 3 * SECOND)
    assert result["state"] == {
        "clicks": 3,
        "timed": 2,
        "ms": 30,
        "slowest": 20,
        "last_ms": 20,
        "last": "2026-01-01T12:00:03Z",
        "countries": ["de"],
    }
    (result,) = window.send(click(4, 5))
    assert (result["version"], result["state"]["ms"]) == (4, 35)


@pytest.mark.parametrize("seed", range(20))
def test_any_batches_give_the_state_of_one_batch(seed: int) -> None:
    rnd = random.Random(seed)
    deltas = [click(n, rnd.choice((None, POISON, rnd.randrange(100))), country=rnd.choice("abc")) for n in range(30)]
    at_once, by_batches = tally(), tally()
    dead_letters = [result["dead_letter"] for result in at_once.send(*deltas) if "dead_letter" in result]
    results = []
    while deltas:
        batch, deltas = deltas[: (size := rnd.randrange(1, 6))], deltas[size:]
        results += by_batches.send(*rnd.sample(batch, len(batch)))
    assert [result["dead_letter"] for result in results if "dead_letter" in result] == dead_letters
    assert by_batches.content() == at_once.content()


def test_a_record_on_which_the_processor_raises_leaves_no_trace_but_a_dead_letter() -> None:
    window, without = tally(), tally()
    results = window.send(click(1, 10), click(2, POISON, country="fr", offset=42), click(3, 30))
    without.send(click(1, 10), click(3, 30))
    assert window.content() == without.content()
    (dead_letter,) = (result for result in results if "dead_letter" in result)
    assert (dead_letter["device_id"], dead_letter["is_failure"]) == (PAGE, True)
    content = DeadLetter.model_validate_json(dead_letter["dead_letter"])
    assert (content.topic, content.partition, content.offset, content.epoch) == ("events", 0, 42, 7)
    assert (content.reason, content.detail) == ("processor_failed", "ValueError: a poisonous click")
    assert content.timestamp == START + 2 * SECOND
    assert content.head is not None
    assert '"ms":-666' in content.head


def test_a_first_record_on_which_the_processor_raises_stores_nothing() -> None:
    window = tally()
    (dead_letter,) = window.send(click(1, POISON))
    assert "dead_letter" in dead_letter
    assert window.content() == ([None, [], {}], {})
    assert list(window.tester.handle.listTimers()) == []


@pytest.mark.parametrize(
    ("row", "detail"),
    [
        (Row(clicks="many"), "ValidationError"),
        (Row(clicks=1, other=2), "ValidationError"),
        (Row(clicks=2**70), "TypeError"),
        (Row(clicks=2**63), "ValueError: clicks is an integer of more than 64 bits"),
        (Row(clicks=-(2**63) - 1), "TypeError"),
        (Row(countries=["de", None]), "ValidationError"),
        (Row(countries=["de" * 200_000]), "ValueError: the state has 400018 bytes, and 262144 are allowed"),
        ({"clicks": 1}, "TypeError: it yielded a dict, and a state is a pyspark.sql.Row: write Row(name=value)"),
    ],
)
def test_a_row_that_is_no_state_is_a_dead_letter(row: Any, detail: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tally, "_state", lambda _: row)
    window = tally()
    (dead_letter,) = window.send(click(1))
    assert DeadLetter.model_validate_json(dead_letter["dead_letter"]).detail.startswith(detail)  # type: ignore[union-attr]
    assert window.stored() == {}


class UnprintableError(ValueError):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (ValueError("half \ud800"), "ValueError: half ?"),
        (UnprintableError(), "UnprintableError"),
        (SystemExit(1), "SystemExit: 1"),
    ],
)
def test_no_error_and_no_text_of_one_stops_the_batch(
    error: BaseException, detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Tally) -> Row:
        raise error

    monkeypatch.setattr(Tally, "_state", fail)
    (dead_letter,) = tally().send(click(1))
    assert DeadLetter.model_validate_json(dead_letter["dead_letter"]).detail == detail


def test_dead_letters_pass_the_processor_by() -> None:
    window = tally()
    refused = delta(1) | {"dead_letter": "{}", "event": {}}
    results = window.send(refused, click(2))
    assert [("dead_letter" in result, result.get("version")) for result in results] == [(True, None), (False, 1)]
    assert window.send(refused) == [refused]


def test_answers_reach_the_processor_and_the_slot() -> None:
    window = visit()
    window.send(click(1))
    (result,) = window.send(answer(2, 1, "Ada"))
    visited = {"page": PAGE, "clicks": 1, "is_quiet": False, "recent": "de", "countries": {"de": 1}, "last": ["1"]}
    assert result["state"] == visited | {"owner_name": "Ada"}
    assert (result["version"], result["answers"]["owner"]["result"]) == (2, {"name": "Ada"})
    (result,) = window.send(answer(3, 3, "Eve"), answer(4, 2, "Bob"))
    assert result["answers"]["owner"]["result"] == {"name": "Eve"}


def test_an_answer_is_stored_also_when_the_processor_raises_on_it() -> None:
    window = visit()
    window.send(click(1))
    broken = answer(2, 1, "Ada")
    del broken["answers"]["owner"]["result"]
    dead_letter, result = window.send(broken)
    assert "dead_letter" in dead_letter
    assert result["answers"]["owner"]["status"] == "result"
    assert result["state"]["clicks"] == 1
    assert "owner_name" not in result["state"]


@pytest.mark.parametrize("slope", [math.nan, math.inf])
def test_a_number_in_a_model_that_json_does_not_have_is_a_dead_letter(
    slope: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tally, "_state", lambda _: Row(fit=Row(slope=slope)))
    placed = replace(layout(processed.tallies, epoch=7), state=Fitted, fields=("fit",))
    (dead_letter,) = Window(ProcessorAdapter(Tally, TALLY, placed)).send(click(1))
    detail = DeadLetter.model_validate_json(dead_letter["dead_letter"]).detail
    assert detail == "ValueError: fit.slope is not a finite number"


@pytest.mark.parametrize("is_reversed", [False, True])
def test_of_answers_with_other_null_fields_the_greatest_one_stays(*, is_reversed: bool) -> None:
    results: list[dict[str, Any]] = [{"limit": 1}, {"street": "x"}, {"street": "a", "limit": 2}, {"parts": [{"a": 1}]}]
    window = StoredWindow(PAGE, microseconds(START))
    for result in reversed(results) if is_reversed else results:
        given = answer(1, 1, "")
        given["answers"]["owner"]["result"] = result
        window.add(given, {"owner": Place})
    assert window.answers["owner"]["result"] == {"street": "x"}, "nulls order before values, field by field"


def test_a_timer_gives_a_state_with_a_version_of_its_own() -> None:
    window = visit()
    window.send(click(1))
    assert window.wait_until(START + timedelta(milliseconds=PAUSE_MS - 1)) == []
    (result,) = window.wait_until(START + timedelta(milliseconds=PAUSE_MS))
    assert (result["version"], result["state"]["is_quiet"]) == (2, True)
    assert result["as_of"] == microseconds(START + SECOND)


def test_a_timer_on_which_the_processor_raises_is_a_dead_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    window = visit()
    window.send(click(1))
    monkeypatch.setattr(Visits, "_state", lambda *_, **__: 1 / 0)
    (dead_letter,) = window.wait_until(START + timedelta(milliseconds=PAUSE_MS))
    content = DeadLetter.model_validate_json(dead_letter["dead_letter"])
    assert (content.topic, content.partition, content.offset) == (processed.app.topics.events, -1, -1)
    assert content.detail == "ZeroDivisionError: division by zero"
    assert window.stored()["version"] == 1


def test_a_window_expires_when_the_watermark_has_passed_its_start() -> None:
    window, app = tally(), processed.tallies
    window.send(click(1, 10))
    before, _ = window.content()
    due = START + app.kept_for + app.skew + app.state.grace
    window.wait_until(due)
    assert window.content()[0] == before
    again = milliseconds(due + app.state.grace)
    assert list(window.tester.handle.listTimers()) == [again]
    # The tester has no watermark in processing time.
    passed = TimerValues(again, milliseconds(START))
    assert list(window.tester.processor.handleExpiredTimer((PAGE,), passed, ExpiredTimerInfo(again))) == []
    assert window.content() == ([None, [], {}], {})


def microseconds(time: datetime) -> int:
    """A time as the step gives it."""
    return (time - EPOCH) // MICROSECOND


def milliseconds(time: datetime) -> int:
    """A time as Spark's timers have it."""
    return microseconds(time) // 1000
