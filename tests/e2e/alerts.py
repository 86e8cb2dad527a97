"""The weather's topics with the job and two derive workers, and what is expected of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from contracts.records.tables import encode_row
from contracts.wire import decode_snapshot
from contracts.wire.alert_record import AlertRecord
from contracts.wire.partition import partition
from examples.weather.application import app
from examples.weather.readings import Reading
from examples.weather.replay import send
from services.runtime.kafka.clients import KafkaClients
from services.runtime.kafka.options import create_producer
from services.runtime.table_writer import TableWriter
from tests.deadline import DEADLINE_S
from tests.e2e.loop import PARTITIONS, Loop
from tests.examples.weather.oracle import Crossings, Oracle, RuleChange
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import until

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

    from confluent_kafka import Message
    from pyspark.sql import SparkSession

    from tests.forked import Forked
    from tests.services.tools.broker.embedded import EmbeddedBroker

APPLICATION = "tests.e2e.weather:app"
DERIVE = "services.derive"
WORKERS = 2
STATIC = 0
"""The worker that is a static member of its group, and so has its partitions again as soon as it is started again.
Those of the other worker wait for the end of its session, and may go to the first."""
POLL_S = 0.02
MARKED = "zz*"


def in_each_partition(prefix: str) -> dict[int, str]:
    """A key for each partition."""
    return {partition(key.encode(), PARTITIONS): key for key in (f"{prefix}{number}" for number in range(20))}


STATIONS, MARKERS = in_each_partition("zz"), in_each_partition("marker-")
"""Stations that always break a rule, and the rule that is changed after another one of its partition of the table.

A worker applies the changes of a partition in their order. So when these stations have alerts of the newest marker,
every partition was evaluated by the changes before it.
"""


class AlertLoop:
    """The job, the workers, and the oracle. After `settle`, the alerts are as the oracle has them."""

    def __init__(self, spark: SparkSession, broker: EmbeddedBroker, prefix: str, folder: Path) -> None:
        self.loop = Loop(broker, prefix, folder, APPLICATION)
        self.broker, self.oracle = broker, Oracle()
        self.job = HostedJob(spark, self.loop.bootstrap, folder, APPLICATION, self.loop.environment)
        self._client = {"bootstrap.servers": self.loop.bootstrap}
        self._writer = TableWriter(KafkaClients(self._client))
        self._producer = create_producer(self._client, "test")
        self._sent: Counter[str] = Counter()
        self._number_of: dict[tuple[str, int], int] = {}
        self._changes = 0
        self._published = Published(self.loop, Crossings(self._number_of))
        self._workers: list[Forked | None] = [None] * WORKERS

    def start(self, first: datetime) -> None:
        """Start everything, with readings of the stations that always break a rule."""
        self.job.start()
        for number in range(WORKERS):
            self.start_worker(number)
        for station in STATIONS.values():
            own: dict[str, Any] = {"station": station, "first_seen": first, "ts": first}
            self.send(Reading(event_id=f"{station}/{temp}", temperature=temp, **own) for temp in (0.0, 100.0))

    def stop(self) -> None:
        """Stop everything."""
        self.job.stop()
        for number in range(WORKERS):
            self.kill_worker(number)

    def start_worker(self, number: int) -> None:
        """Start one of the derive workers."""
        options = {"group.instance.id": "static"} if number == STATIC else {}
        self._workers[number] = self.loop.start(
            DERIVE, f"derive-{number}", kafka_options=orjson.dumps(options).decode()
        )

    def kill_worker(self, number: int) -> None:
        """Kill one of the derive workers."""
        if (worker := self._workers[number]) is not None:
            assert worker.poll() is None, self._log(number).read_text("utf-8")[-3000:]
            worker.kill()
            worker.wait(DEADLINE_S)

    def send(self, readings: Iterable[Reading]) -> None:
        """Send readings."""
        for reading in readings:
            send(self._producer, f"{self.loop.prefix}events", reading)
            self._sent[reading.station] += 1
            self.oracle.read(reading.station, reading.temperature)
        assert self._producer.flush(60) == 0

    def change(self, change: RuleChange) -> None:
        """Change a rule, and then the marker of its partition."""
        (table,) = app.tables
        marker = MARKERS[partition(change.name.encode(), PARTITIONS)]
        for written in (change, RuleChange(change.before, marker, MARKED, 1.0)):
            row = orjson.dumps({"keys": written.keys, "degrees": written.degrees})
            value = None if written.degrees is None else encode_row(table, written.name, row, "ann")
            version = self._writer.write(f"{self.loop.prefix}{table.name}", written.name, value, "ann")
            self._number_of[written.name, version] = self._changes
            self.oracle.change(self._changes, written)
            self._changes += 1

    def settle(self) -> None:
        """Wait until everything sent is evaluated and committed, and the oracle has the same alerts."""
        try:
            until(lambda: self.job.ended() or self._is_settled(), "the alerts of the plain loop", pause_s=0)
        except AssertionError as error:
            crossings = self._published.crossings
            opened, closed = Counter(self.oracle.opened), Counter(self.oracle.closed)
            error.add_note(f"sent {self._sent}, published {self._published.versions}, {self._published.end_offsets}")
            error.add_note(f"missing: {opened - crossings.opened} {closed - crossings.closed}")
            error.add_note(f"too many: {crossings.opened - opened} {crossings.closed - closed}")
            for number in range(WORKERS):
                error.add_note(self._log(number).read_text("utf-8")[-3000:])
            raise
        assert not self.job.ended(), self.job.log.read_text(encoding="utf-8")[-3000:]

    def _is_settled(self) -> bool:
        published = self._published
        published.read(POLL_S)
        return (
            published.versions == self._sent
            and published.crossings.opened == Counter(self.oracle.opened)
            and published.crossings.closed == Counter(self.oracle.closed)
            and published.are_committed()
        )

    def _log(self, number: int) -> Path:
        return self.loop.log(f"derive-{number}")


class Published:
    """Follows the snapshots and the alerts."""

    def __init__(self, loop: Loop, crossings: Crossings) -> None:
        (alerts,) = app.alerts
        self.crossings = crossings
        self.versions: Counter[str] = Counter()
        self.end_offsets: dict[int, int] = {}
        """By partition of the snapshots, the offset after the last one of a new version."""
        self._snapshots, alerts_topic = f"{loop.prefix}snapshots", f"{loop.prefix}{alerts.name}"
        self._first: dict[tuple[str, int], bytes | None] = {}
        self._consumer = Consumer({"bootstrap.servers": loop.bootstrap, "group.id": loop.group(DERIVE)})
        self._consumer.assign(
            [
                TopicPartition(topic, number, OFFSET_BEGINNING)
                for topic in (self._snapshots, alerts_topic)
                for number in range(PARTITIONS)
            ]
        )

    def read(self, wait_s: float) -> None:
        """Take what was published since."""
        message = self._consumer.poll(wait_s)
        while message is not None:
            if message.error() is None:
                self._take(message)
            message = self._consumer.poll(0)

    def are_committed(self) -> bool:
        """Return whether the workers have committed all new snapshots."""
        partitions = [TopicPartition(self._snapshots, number) for number in self.end_offsets]
        committed = self._consumer.committed(partitions, 30)
        return all(position.offset >= self.end_offsets[position.partition] for position in committed)

    def _take(self, message: Message) -> None:
        if message.topic() != self._snapshots:
            self.crossings.add(AlertRecord.model_validate_json(message.value() or b""))
            return
        snapshot = decode_snapshot(message.value() or b"")
        station, version = snapshot.device_id, snapshot.version
        assert self._first.setdefault((station, version), message.value()) == message.value(), (
            "published again, changed"
        )
        if version > self.versions[station]:
            assert version == self.versions[station] + 1, f"{station} has no version {version - 1}"
            self.versions[station] = version
            self.end_offsets[message.partition() or 0] = (message.offset() or 0) + 1
