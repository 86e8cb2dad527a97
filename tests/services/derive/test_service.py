"""The worker as a process, on a real broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from contracts.topics import PARTITIONER
from contracts.wire import Snapshot
from services.broker.readiness import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.services.broker.embedded import EmbeddedBroker

CHECKOUT = Path(__file__).parents[3]
DEADLINE_S = 60
PARTITIONS = 4
MORNING = datetime(2013, 1, 1, 8, tzinfo=UTC)


class Topics:
    """The flights' topics on a broker of their own names: an application of the tests has a prefix."""

    def __init__(self, bootstrap: str, prefix: str, logs: Path) -> None:
        self.bootstrap, self.prefix, self.logs = bootstrap, prefix, logs
        names = [f"{prefix}{name}" for name in ("snapshots", "aircraft", "dead_letters")]
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        made = self.admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names])
        for future in made.values():
            future.result(DEADLINE_S)

    def publish(self, *snapshots: Snapshot) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "partitioner": PARTITIONER})
        for one in snapshots:
            producer.produce(f"{self.prefix}snapshots", key=one.device_id, value=one.encode())
        assert producer.flush(DEADLINE_S) == 0

    def derived(self, enough: int) -> list[dict[str, Any]]:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "reader", "enable.auto.commit": False})
        consumer.assign([TopicPartition(f"{self.prefix}aircraft", number, 0) for number in range(PARTITIONS)])
        found: list[dict[str, Any]] = []

        def more() -> bool:
            found.extend(orjson.loads(one.value() or b"null") for one in consumer.consume(1000, 0.05))
            return len(found) >= enough

        wait_until(more, f"{enough} derived records", DEADLINE_S)
        consumer.close()
        return found

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen[bytes]]:
        env = {
            "STATELOOP_KAFKA": self.bootstrap,
            "STATELOOP_APPLICATION": "tests.services.derive.prefixed:app",
            "STATELOOP_TEST_PREFIX": self.prefix,
        }
        with (self.logs / "derive.log").open("ab") as log:
            command = [sys.executable, "-m", "services.derive"]
            process = subprocess.Popen(command, cwd=CHECKOUT, env=os.environ | env, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait(DEADLINE_S)


def _flight(number: int, hour: int, version: int = 1) -> Snapshot:
    return Snapshot(
        device_id=f"flight-{number}",
        first_seen=MORNING.replace(hour=hour),
        version=version,
        as_of=MORNING,
        state={"tailnum": "N1", "status": "departed", "number": number},
    )


@pytest.mark.kafka
def test_killed_worker_goes_on_where_it_was(broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> None:
    topics = Topics(broker.bootstrap, topics_prefix, tmp_path)
    topics.publish(*(_flight(number, 8) for number in range(50)))
    with topics.worker() as worker:
        assert len(topics.derived(50)) == 50
        worker.kill()
        worker.wait(DEADLINE_S)
    topics.publish(*(_flight(number, 9) for number in range(50, 100)))
    with topics.worker() as worker:
        found = topics.derived(100)
        assert {one["device_id"] for one in found} == {f"flight-{number}" for number in range(100)}
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(DEADLINE_S) == 0
    assert {one["key"] for one in found} == {"N1"}


@pytest.mark.kafka
def test_missing_topic_is_said(broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> None:
    topics = Topics(broker.bootstrap, topics_prefix, tmp_path)
    (deleted,) = topics.admin.delete_topics([f"{topics_prefix}aircraft"]).values()
    deleted.result(DEADLINE_S)
    with topics.worker() as worker:
        assert worker.wait(DEADLINE_S) == 1
    assert "python -m services.topics" in (tmp_path / "derive.log").read_text(encoding="utf-8")
