"""The job of an application with a processor, on a broker: a stop, timers, a TTL, answers and poisonous records."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from contracts.records.record import Record, timestamp_ms
from contracts.wire import DeadLetter, Feedback, Snapshot, decode_snapshot
from services.runtime.kafka.options import record_of
from tests.processed import MOST_LAST, POISON, visits
from tests.spark_app.batches import SHORT
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import Topics, everything, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]
PAGES = ("a", "b", "c", "d")
CLICKS = 400


@pytest.fixture
def topics(broker: EmbeddedBroker, topics_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Topics:
    monkeypatch.setenv("VISITS_PREFIX", topics_prefix)
    return Topics(broker.bootstrap, visits())


@pytest.fixture
def job(spark: SparkSession, topics: Topics, tmp_path: Path) -> Iterator[HostedJob]:
    running = HostedJob(spark, topics.kafka, tmp_path, visits(), SHORT | {"STATELOOP_CATCH_UP": "true"})
    yield running.start()
    running.stop()


def test_states_are_exact_after_a_stop_and_timers_answers_and_dead_letters_come(topics: Topics, job: HostedJob) -> None:
    start = datetime.now(UTC)
    clicks = [click(number, PAGES[number % len(PAGES)], start) for number in range(CLICKS)]
    send(topics, clicks[:100])
    until(lambda: counted(topics) == 100, "the first clicks")
    # While the query runs, is stopped in a batch, and reads what it had read before.
    send(topics, clicks[100:250])
    job.batches()
    send(topics, [*clicks[200:300], click(9_999, "a", start, ms=POISON), b"no JSON"])
    job.stop()
    send(topics, clicks[300:])
    sent = CLICKS + 50 + 2
    job.start()
    until(lambda: counted(topics) >= CLICKS, "all clicks")
    until(lambda: all(snapshot.state["is_quiet"] for snapshot in newest(topics).values()), "the timers of all pages")
    pages = newest(topics)
    assert {page: snapshot.state["clicks"] for page, snapshot in pages.items()} == dict.fromkeys(
        PAGES, CLICKS // len(PAGES)
    )
    assert all(snapshot.state["countries"] == {"de": snapshot.state["clicks"]} for snapshot in pages.values())
    assert {len(snapshot.state["last"]) for snapshot in pages.values()} == {MOST_LAST}
    assert min(snapshot.version for snapshot in pages.values()) > CLICKS // len(PAGES), "the clicks and a timer"
    assert not any("recent" in snapshot.state for snapshot in pages.values()), "its TTL is shorter than the timer"
    assert any(
        "recent" in decode_snapshot(message.value() or b"").state for message in read(topics, topics.names.snapshots)
    )
    stored = topics.read(topics.names.dead_letters, 2)
    dead_letters = [DeadLetter.model_validate_json(message.value() or b"") for message in stored]
    assert {dead_letter.reason for dead_letter in dead_letters} == {"processor_failed", "malformed"}
    records = [record_of(message) for message in topics.read(topics.names.events, sent)]
    origins = {(record.topic, record.partition, record.offset): record.value for record in records}
    for dead_letter in dead_letters:
        value = origins[dead_letter.topic, dead_letter.partition, dead_letter.offset]
        assert value is not None
        assert (b"9999" in value) == (dead_letter.reason == "processor_failed")
    # An answer, as a worker sends it.
    topics.send(topics.names.feedback, [answer(pages["b"])])
    until(lambda: newest(topics)["b"].state.get("owner_name") == "Ada", "the answer")
    answered = newest(topics)["b"]
    assert answered.enrichments["owner"].result == {"name": "Ada"}
    assert answered.version == pages["b"].version + 1
    assert answered.epoch == job.epoch()
    until(lambda: job.figures()["lag", "visits", topics.names.events] == 0, "no lag after the batch of the answer")


def click(number: int, page: str, ts: datetime, ms: int | None = None) -> bytes:
    """A click as its topic has it."""
    content = {"event_id": str(number), "click": str(number), "page": page, "country": "de", "ts": ts.isoformat()}
    return orjson.dumps(content | ({} if ms is None else {"ms": ms}))


def answer(snapshot: Snapshot) -> Record:
    """The answer to this snapshot."""
    feedback = Feedback(
        device_id=snapshot.device_id,
        first_seen=snapshot.first_seen,
        enrichment="owner",
        epoch=snapshot.epoch,
        version=snapshot.version,
        status="result",
        ts=datetime.now(UTC),
        fingerprint="f",
        result={"owner": {"name": "Ada"}},
    )
    return Record("", 0, 0, timestamp_ms(datetime.now(UTC)), snapshot.device_id.encode(), feedback.encode())


def send(topics: Topics, values: list[bytes]) -> None:
    """Send clicks. The key of an event of a windowed state has no meaning."""
    stamp = datetime.now(UTC)
    topics.send(topics.names.events, (Record("", 0, 0, timestamp_ms(stamp), b"any", value) for value in values))


def counted(topics: Topics) -> int:
    """The clicks in the newest snapshots."""
    return sum(snapshot.state["clicks"] for snapshot in newest(topics).values())


def read(topics: Topics, topic: str) -> list[Any]:
    """Return the records of a topic, without heartbeats."""
    return [message for message in everything(topics.kafka, topic) if message.value() is not None]


def newest(topics: Topics) -> dict[str, Snapshot]:
    """The newest snapshot of each page."""
    by_device: dict[str, Snapshot] = {}
    for message in read(topics, topics.names.snapshots):
        snapshot = decode_snapshot(message.value())
        known = by_device.get(snapshot.device_id)
        if known is None or snapshot.order >= known.order:
            by_device[snapshot.device_id] = snapshot
    return by_device
