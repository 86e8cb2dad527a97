"""Workers with alerts on a real broker, while partitions are added. `tests/e2e/test_alerts.py` kills such workers."""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from contracts.records.named_states import named
from contracts.records.state_record import StateRecordDecoder
from contracts.records.tables import encode_row
from contracts.wire import Snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import window_key
from services.runtime.job_progress import JobProgress
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.clients import KafkaClients
from services.runtime.kafka.options import create_producer
from services.runtime.kafka.reader import BlockingKafkaReader
from services.runtime.kafka.values import Partition
from services.runtime.table_writer import TableWriter
from services.tools.broker.readiness import wait_until
from services.tools.topics import growth
from services.tools.topics.growth import PartitionGrowth
from tests.deadline import DEADLINE_S
from tests.forked import running
from tests.services.derive.alerted import LIMITS, Crossing, Limit, sensors, transitions
from tests.spark_app.running import everything

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from contracts.records.state_record import StateRecord
    from tests.forked import Forked
    from tests.services.tools.broker.embedded import EmbeddedBroker

PARTITIONS, MORE_PARTITIONS = 2, 5
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SENSORS = [f"sensor-{number}" for number in range(40)]


class Sensors:
    """The topics of the sensors on a broker, and workers of one group."""

    def __init__(self, bootstrap: str, prefix: str, folder: Path) -> None:
        self.client = {"bootstrap.servers": bootstrap}
        self.prefix, self.folder, self.partitions = prefix, folder, PARTITIONS
        self.reports: list[str] = []
        admin, names = (
            AdminClient({"bootstrap.servers": bootstrap}),
            ("snapshots", "too_high", "limits", "dead_letters"),
        )
        for future in admin.create_topics([NewTopic(f"{prefix}{name}", PARTITIONS, 1) for name in names]).values():
            future.result(DEADLINE_S)
        self.producer = create_producer(self.client, "test")
        self.writer = TableWriter(KafkaClients(self.client))
        self._record_progress()
        self.reader = BlockingKafkaReader(self.client, "test", log=logging.getLogger("test"))
        self.alerts: list[tuple[bytes | None, bytes | None]] = []
        places = [Partition(f"{prefix}too_high", number) for number in range(PARTITIONS)]
        for _ in self.reader.read(self.reader.bounds(places)):
            """There are none."""

    def _record_progress(self) -> None:
        """Record the progress of a job that has begun: else workers wait for it."""
        progress = JobProgress(KafkaAdmin(self.client, "job"), f"{self.prefix}snapshots")
        progress.record(NOON, 0, dict.fromkeys(range(self.partitions), 0))

        def is_recorded() -> bool:
            return len(progress.read(range(self.partitions)) or {}) == self.partitions

        wait_until(is_recorded, "the progress is recorded", DEADLINE_S)
        progress.close()

    def put(self, rule: str, limit: Limit | None) -> int:
        value = None if limit is None else encode_row(LIMITS, rule, limit.model_dump_json(), "ann")
        return self.writer.write(f"{self.prefix}limits", rule, value, "ann")

    def publish(self, version: int, value: int, epoch: int = 0) -> None:
        """Publish a snapshot of each sensor."""
        for sensor in SENSORS:
            at = NOON + timedelta(seconds=version)
            own: dict[str, Any] = {
                "device_id": sensor,
                "first_seen": NOON,
                "epoch": epoch,
                "version": version,
                "as_of": at,
            }
            one = Snapshot(**own, state={"value": value})
            home = partition(sensor.encode(), self.partitions)
            self.producer.produce(f"{self.prefix}snapshots", one.encode(), window_key(sensor, NOON), home)
        assert self.producer.flush(DEADLINE_S) == 0

    def transitions(self) -> tuple[list[Crossing], list[tuple[Crossing, str]]]:
        self.alerts += [(one.key, one.value) for one in self.reader.poll()]
        return transitions(self.alerts)

    def grow(self) -> None:
        """Add partitions, as `stateloop rebuild` does between two jobs."""
        application, kafka, address = sensors(self.prefix), KafkaClients(self.client), self.client["bootstrap.servers"]
        growth = PartitionGrowth(application, kafka, address, MORE_PARTITIONS)
        growth.run([f"{self.prefix}derive"], self.reports.append, lambda: None)
        self.partitions = MORE_PARTITIONS
        self._record_progress()
        self.producer = create_producer(self.client, "test")  # it knows the partitions that are there

    def records(self) -> list[tuple[StateRecord, bytes | None, bytes]]:
        """The alerts as the query service decodes them, with their keys and values."""
        decoder = StateRecordDecoder(named(sensors(self.prefix))["too_high"])
        found = []
        for one in everything(self.client["bootstrap.servers"], f"{self.prefix}too_high"):
            value = one.value() or b""
            found.append((decoder.value(one.key(), value, one.offset() or 0, one.timestamp()[1]), one.key(), value))
        return found

    def await_transitions(self, opened: int, closed: int) -> None:
        def there() -> bool:
            found = self.transitions()
            return len(found[0]) >= opened and len(found[1]) >= closed

        wait_until(there, f"{opened} alerts that opened, and {closed} that closed", DEADLINE_S)

    def worker(self, name: str = "worker") -> AbstractContextManager[Forked]:
        env = os.environ | {
            "STATELOOP_KAFKA": self.client["bootstrap.servers"],
            "STATELOOP_APPLICATION": "tests.services.derive.alerted:APP",
            "STATELOOP_GROUP": f"{self.prefix}derive",
            "ALERTED_PREFIX": self.prefix,
        }
        return running("services.derive", env, self.folder / f"{name}.log")


@pytest.mark.kafka
@pytest.mark.slow
def test_alerts_continue_in_the_partitions_that_were_added(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "METADATA_S", 0.0)
    monkeypatch.setattr(growth, "FOLLOW_S", 0.0)
    world, count = Sensors(broker.bootstrap, topics_prefix, tmp_path), len(SENSORS)
    rule = world.put("high", Limit(high=5, low=4))
    world.publish(1, 7)
    with world.worker() as worker:
        world.await_transitions(count, 0)
        worker.terminate()
        worker.wait(DEADLINE_S)
    world.publish(2, 3)
    world.publish(3, 8)

    def found() -> tuple[list[Crossing], list[tuple[Crossing, str]]]:
        return transitions([record[1:] for record in world.records()])

    growing = threading.Thread(target=world.grow)
    growing.start()
    wait_until(lambda: len(world.reports) == 1, "a report", DEADLINE_S)
    with world.worker("second") as worker:
        wait_until(lambda: len(world.reports) == 2, "another report", DEADLINE_S)
        before = world.records()
        worker.terminate()
        worker.wait(DEADLINE_S)
    growing.join(DEADLINE_S)
    snapshots, group = f"{topics_prefix}snapshots", f"the group {topics_prefix}derive have"
    assert world.reports[:2] == [
        f"waits until the workers of {group} read {snapshots}: they must run until then",
        f"waits until the workers of {group} stopped",
    ]
    copied = world.records()
    assert sorted(one for one, _, _ in copied) == sorted(one for one, _, _ in before), "readers drop all copies"
    world.publish(3, 8, epoch=1)  # as a rebuilt job does
    with world.worker("third"):
        world.publish(4, 3, epoch=1)
        world.publish(5, 9, epoch=1)
        wait_until(lambda: len(found()[0]) >= 3 * count, "the last alerts", DEADLINE_S)
        world.put("high", None)
        wait_until(lambda: len(found()[1]) >= 3 * count, "the end of the alerts", DEADLINE_S)
    records = world.records()
    newest: dict[bytes | None, StateRecord] = {}
    for record, key, _ in records:
        assert key not in newest or newest[key][1:4] < record[1:4], "each record is newer than those before it"
        newest[key] = record
    opened, closed = found()
    windows = {one: window_key(one, NOON).decode() for one in SENSORS}
    assert Counter(opened) == Counter((windows[one], "high", rule, version) for one in SENSORS for version in (1, 3, 5))
    assert Counter(why for _, why in closed) == {"condition": 2 * count, "rule_removed": count}
