"""The application with every reducer once more, with traces; and streams for it."""

import random
from typing import Any

import orjson

from contracts import Application, Topics
from contracts.records.record import Record
from tests.everything import Everything, Thing, answer_record, event_record, owner, random_answer, random_event, score


class TracedThing(Thing):
    """An event that carries a trace context."""

    traceparent: str | None = None


app = Application(
    name="traced",
    event=TracedThing,
    state=Everything,
    enrichments=(owner, score),
    topics=Topics(replay=True),
    traced=True,
)


def context(number: int) -> str:
    """A trace context; that of a larger number is larger."""
    return f"00-{number + 0xABC:032x}-{number + 0xABC:016x}-01"


def traced(record: Record, given: Any, seconds: int = 0) -> Record:
    """A record that the broker took so many seconds later, with a field for the context as it was sent."""
    value = orjson.dumps(orjson.loads(record.value or b"") | {"traceparent": given})
    return record._replace(value=value, timestamp_ms=record.timestamp_ms + 1000 * seconds)


def random_stream(seed: int, *, devices: int, records: int) -> tuple[list[Record], list[Record]]:
    """Events and feedback: some traced, some not, some with nonsense, many at the same time."""
    rnd = random.Random(seed)
    names = [f"d{number}" for number in range(devices)]
    given: list[Any] = [None, "", "nonsense", context(0) + "\n", context(0).upper(), {"a": 1}, 7]

    def one(record: Record) -> Record:
        sent = context(rnd.randrange(1000)) if rnd.random() < 0.7 else rnd.choice(given)
        return traced(record, sent, rnd.randrange(20))

    events = [one(event_record(random_event(rnd, rnd.choice(names), number))) for number in range(records)]
    answers = [one(answer_record(random_answer(rnd, rnd.choice(names), number))) for number in range(records)]
    return events, answers
