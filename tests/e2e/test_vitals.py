"""Chunks of waveforms through decoder, states, worker and API: every sample is where it was recorded."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from contracts.model.topics import PARTITIONER
from examples.vitals.arrivals import arrivals
from tests.e2e.loop import Loop
from tests.e2e.reader import Reader
from tests.examples.vitals.oracle import BLOB_S, WindowKey, expected
from tests.services.broker.embedded import free_port_pair
from tests.spark_app.running import Job, until

if TYPE_CHECKING:
    from pathlib import Path

    from contracts.wire import Snapshot
    from tests.services.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark]

SUITE = "tests.e2e.vitals:suite"
SEED, PATIENTS, SECONDS = 3, 50, 40


def states(reader: Reader) -> dict[WindowKey, Snapshot]:
    """The newest snapshots so far."""
    reader.read()
    return reader.latest


def rate(snapshot: Snapshot) -> tuple[str, Any] | None:
    """The answer of the API that is in the state; None before there is one."""
    answer = snapshot.enrichments.get("heart_rate")
    return None if answer is None or answer.status == "skipped" else (answer.status, (answer.result or {}).get("bpm"))


def test_samples_gaps_coverage_and_rates_of_all_patients(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    loop = Loop(broker, topics_prefix, tmp_path, SUITE)
    start = int(time.time()) // BLOB_S * BLOB_S - 60
    seconds = range(start, start + SECONDS)
    known = expected(SEED, PATIENTS, seconds)
    producer = Producer({"bootstrap.servers": loop.bootstrap, "partitioner": PARTITIONER})
    for number in seconds:
        for one in arrivals(SEED, PATIENTS, number):
            producer.produce(f"{topics_prefix}waveforms", one.value, one.patient)
    assert producer.flush(60) == 0
    blobs, hours = (Reader(loop.bootstrap, f"{topics_prefix}{name}.snapshots") for name in ("blobs", "hours"))
    port = str(free_port_pair())
    reference = json.dumps({"reference": f"http://127.0.0.1:{port}"})
    job = Job(loop.bootstrap, tmp_path, SUITE, loop.environment).start()
    try:
        with (
            loop.service("examples.vitals.reference", reference_port=port),
            loop.service("services.enrichment", apis=reference, allowed_networks='["127.0.0.0/8"]'),
        ):
            until(
                lambda: (
                    {key: one.state["pulse"] for key, one in states(blobs).items()} == known.blobs
                    and {key: one.state["covered"] for key, one in states(hours).items()} == known.hours
                ),
                "all samples",
            )
            answered = {
                key: ("absence", None) if bpm is None else ("result", bpm) for key, bpm in known.rates().items()
            }
            assert len(answered) > PATIENTS
            until(
                lambda: answered.items() <= {key: rate(one) for key, one in states(blobs).items()}.items(),
                "the rates of all complete blobs",
            )
    finally:
        job.stop()
        blobs.close()
        hours.close()
    assert any(None in series for series in known.blobs.values())
    assert {key for key, one in blobs.latest.items() if rate(one)} == answered.keys()
    assert all(one.as_of < datetime.now(UTC) for one in blobs.latest.values())
