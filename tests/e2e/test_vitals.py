"""Chunks of waveforms through decoder, states, worker, API and sinks. Job, sinks and stores are killed in the middle.

Every sample is where it was recorded, on the topics and in both stores.
"""

from __future__ import annotations

import json
import time
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from examples.vitals.arrivals import arrivals
from examples.vitals.chunk import CHANNELS
from services.runtime.kafka.options import create_producer
from tests.e2e.loop import Loop
from tests.e2e.reader import Reader
from tests.e2e.sink import Sink
from tests.examples.vitals.oracle import BLOB_S, Expected, WindowKey, expected
from tests.services.tools.broker.embedded import free_port_pair
from tests.spark_app.running import Job, until

if TYPE_CHECKING:
    from pathlib import Path

    from contracts.wire import Snapshot
    from tests.services.sink.servers import PostgresqlServer, RedisServer
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark]

SUITE = "tests.e2e.vitals:suite"
SEED, PATIENTS, SECONDS = 3, 50, 40
Answered = tuple[str, Any]


class Ward:
    """The states of the patients: on the topics, and in both stores."""

    def __init__(self, loop: Loop, *servers: RedisServer | PostgresqlServer) -> None:
        self._loop = loop
        self.readers = {name: Reader(loop.bootstrap, f"{loop.prefix}{name}.snapshots") for name in ("blobs", "hours")}
        self.sinks = [Sink(loop, server, *self.readers) for server in servers]

    def send(self, seconds: range) -> None:
        """Send the chunks that arrive in these seconds, and wait until the first of them are in all states."""
        producer = create_producer({"bootstrap.servers": self._loop.bootstrap}, "test")
        for number in seconds:
            for arrival in arrivals(SEED, PATIENTS, number):
                producer.produce(f"{self._loop.prefix}waveforms", arrival.value, arrival.patient)
        assert producer.flush(60) == 0
        until(lambda: all(self._is_published(name, _time(seconds)) for name in self.readers), f"states of {seconds}")

    def are_written(self, seconds: range) -> bool:
        """Return whether both stores have blobs of these seconds."""
        return all(any(start >= _time(seconds) for _, start in sink.snapshots("blobs")) for sink in self.sinks)

    def is_complete(self, known: Expected) -> bool:
        """Return whether the topics have all samples, and the rates of all complete blobs."""
        blobs, hours = self.latest("blobs"), self.latest("hours")
        return (
            {key: {each.name: blob.state[each.name] for each in CHANNELS} for key, blob in blobs.items()} == known.blobs
            and {key: snapshot.state["covered"] for key, snapshot in hours.items()} == known.hours
            and {key: answered for key, snapshot in blobs.items() if (answered := answer(snapshot))} == answers(known)
        )

    def is_in(self, sink: Sink) -> bool:
        """Return whether a store has the newest snapshot of each window, and nothing else."""
        return all(sink.snapshots(name) == self.latest(name) for name in self.readers)

    def latest(self, name: str) -> dict[WindowKey, Snapshot]:
        """The newest snapshots of a state so far."""
        self.readers[name].read()
        return self.readers[name].latest

    def close(self) -> None:
        """Stop all that runs here."""
        for sink in self.sinks:
            sink.kill()
        for reader in self.readers.values():
            reader.close()

    def _is_published(self, name: str, time: datetime) -> bool:
        return any(snapshot.as_of >= time for snapshot in self.latest(name).values())


def answer(blob: Snapshot) -> Answered | None:
    """The answer of the API that is in a blob; None before there is one."""
    slot = blob.enrichments.get("heart_rate")
    return None if slot is None or slot.status == "skipped" else (slot.status, (slot.result or {}).get("bpm"))


def answers(known: Expected) -> dict[WindowKey, Answered]:
    """Return the expected answer of the API for each complete blob."""
    return {key: ("absence", None) if bpm is None else ("result", bpm) for key, bpm in known.rates().items()}


def _time(seconds: range) -> datetime:
    return datetime.fromtimestamp(seconds.start, UTC)


@pytest.fixture
def loop(broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> Loop:
    """Give topics without a record."""
    return Loop(broker, topics_prefix, tmp_path, SUITE)


def test_samples_gaps_coverage_and_rates_of_all_patients_through_kills(
    loop: Loop, redis_server: RedisServer, postgresql_server: PostgresqlServer
) -> None:
    start = int(time.time()) // BLOB_S * BLOB_S - 60
    first, second, third, last = (range(start + at, start + at + BLOB_S) for at in range(0, SECONDS, BLOB_S))
    known = expected(SEED, PATIENTS, range(start, start + SECONDS))
    assert len(answers(known)) > PATIENTS
    assert all(any(None in blob[channel.name] for blob in known.blobs.values()) for channel in CHANNELS)
    ward = Ward(loop, redis_server, postgresql_server)
    port = str(free_port_pair())
    reference = json.dumps({"reference": f"http://127.0.0.1:{port}"})
    job = Job(loop.bootstrap, loop.folder, SUITE, loop.environment).start()
    with (
        closing(ward),
        loop.service("examples.vitals.reference", reference_port=port),
        loop.service("services.enrichment", apis=reference, allowed_networks='["127.0.0.0/8"]'),
    ):
        try:
            for sink in ward.sinks:
                sink.start()
            ward.send(first)
            until(lambda: ward.are_written(first), "rows in both stores")
            ward.send(second)
            for sink in ward.sinks:
                sink.kill()
                sink.start()
            until(lambda: ward.are_written(second), "rows of sinks that were started again")
            ward.send(third)
            for sink in ward.sinks:
                sink.server.kill()
            ward.send(last)
            job.kill()
            for sink in ward.sinks:
                until(sink.reports_outage, f"the outage of {sink.server.url}")
                sink.server.start()
            job.start()
            until(lambda: ward.is_complete(known), "all samples, and the rates of all complete blobs")
            until(lambda: all(map(ward.is_in, ward.sinks)), "the newest snapshots in both stores")
            assert job.stop() == 0
        finally:
            job.kill()
        for reader in ward.readers.values():
            reader.read_to_end()
        redis, postgresql = ward.sinks
        assert all(redis.rows(name) == postgresql.rows(name) for name in ward.readers)
        assert ward.is_complete(known)
        assert all(snapshot.as_of < datetime.now(UTC) for snapshot in ward.latest("blobs").values())
