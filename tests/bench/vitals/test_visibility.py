from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from bench.harness import topics
from bench.harness.background import Background
from bench.vitals.application import blobs, suite
from bench.vitals.chunks import TOPIC, SentChunk, chunks_of, steady_chunks
from bench.vitals.jobs import VITALS_JOB, VITALS_SERVICE
from bench.vitals.probe import Probe
from bench.vitals.visibility import decoded_at, latencies, oracle_report
from bench.vitals.watch import PushedChunk, note
from contracts import RawRecord
from contracts.model.suite import load_suite
from contracts.records.raw import RawDecoder
from contracts.types.quantize import EPOCH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.services.broker.embedded import EmbeddedBroker

SECOND = 1_800_000_000
"""The start of a blob."""
FIRST, THIRD = SentChunk("p1", SECOND), SentChunk("p1", SECOND + 2)
START = "2027-01-15T08:00:00.000Z"


def pulse(*chunks: SentChunk) -> list[int | None]:
    found: list[int | None] = [None] * 300
    for one in chunks:
        place = one.second % 10 * 100
        found[place : place + 100] = one.samples
    return found


def pushed(samples: Sequence[int | None]) -> dict[str, Any]:
    answer = {"key": "p1", "window_start": START, "value": {"state": {"pulse": samples}}}
    return {"type": "state", "ids": ["all"], "answer": answer}


def test_job_and_service_run_the_suite() -> None:
    for job in (VITALS_JOB, VITALS_SERVICE):
        assert load_suite(job.environment["STATELOOP_APPLICATION"]) is suite


def test_a_blob_shows_the_chunks_that_it_has() -> None:
    samples = pulse(FIRST, THIRD)
    assert chunks_of("p1", START, samples) == [FIRST, THIRD]
    assert FIRST.is_in(samples)
    assert not SentChunk("p1", SECOND + 1).is_in(samples)
    assert not FIRST.is_in([0, *samples[1:]])
    assert not FIRST.is_in([])


def test_the_raw_source_decodes_a_chunk() -> None:
    record = RawRecord(TOPIC, 0, 1, EPOCH, b"p1", THIRD.encode())
    (event,) = RawDecoder(blobs, blobs.raw[0]).decode(record)
    assert orjson.loads(event.value)["pulse"] == THIRD.samples
    assert decoded_at([(5.0, event.value), (6.0, event.value)]) == {THIRD: 5.0}


def test_the_first_push_of_a_chunk_counts() -> None:
    found = dict[SentChunk, PushedChunk]()
    note(pushed(pulse(FIRST)), 1.0, found)
    note(pushed(pulse(FIRST, THIRD)), 2.0, found)
    note({"type": "mark"}, 3.0, found)
    assert found == {FIRST: PushedChunk(1.0, is_right=True), THIRD: PushedChunk(2.0, is_right=True)}


def test_a_chunk_that_is_not_pushed_or_is_pushed_wrong_fails_the_run() -> None:
    sent = {FIRST: 1.0, THIRD: 1.5}
    right = {FIRST: PushedChunk(1.25, is_right=True), THIRD: PushedChunk(2.0, is_right=True)}
    assert oracle_report(sent, right).right
    assert oracle_report(sent, {FIRST: right[FIRST]}).missing == 1
    assert oracle_report(sent, right | {THIRD: PushedChunk(2.0, is_right=False)}).wrong == 1
    figures = latencies(sent, {FIRST: 1.125}, right, [0.125])
    assert [figures[f"{what}_max_ms"] for what in ("decoded", "push", "visible")] == [125, 500, 125]


class Blobs:
    """A client behind which each blob has its chunks, once it has been requested a second time."""

    def __init__(self) -> None:
        self.requested = list[str]()

    def read(self, key: str) -> bytes | None:
        self.requested.append(key)
        if len(self.requested) % 2:
            return None
        patient, _, at = key.partition("?at=")
        start = chunks_of(patient, at, [0])[0].second
        chunks = [SentChunk(patient, start + second) for second in range(10)]
        samples = [sample for chunk in chunks for sample in chunk.samples]
        return orjson.dumps({"value": {"state": {"pulse": samples}}})


@pytest.mark.kafka
def test_a_probe_reads_until_the_blob_has_its_chunk(broker: EmbeddedBroker) -> None:
    topics.renew(broker.bootstrap, (TOPIC,))
    client = Blobs()
    took = Probe(broker.bootstrap, client, ()).read_for(0.2)
    assert len(client.requested) == 2 * len(took) > 2
    with topics.Counter(broker.bootstrap, TOPIC) as counter:
        assert counter.count() == len(took)


@pytest.mark.kafka
def test_each_patient_sends_a_chunk_a_second(broker: EmbeddedBroker) -> None:
    topics.renew(broker.bootstrap, (TOPIC,))
    with Background(steady_chunks, broker.bootstrap, 10) as load, topics.Counter(broker.bootstrap, TOPIC) as counter:
        deadline = time.monotonic() + 30
        while counter.count() < 12:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        sent = load.finish()
        assert counter.count() == len(sent)
    assert {one.patient for one in sent} == {f"p{number}" for number in range(10)}
    assert all(one.second < at for one, at in sent.items())
