"""Topics of one test on a real broker, and workers that derive there."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from contracts.wire import Snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import window_key
from services.runtime.kafka.options import create_producer
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.forked import running

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.forked import Forked

PARTITIONS = 4
MORNING = datetime(2013, 1, 1, 8, tzinfo=UTC)


class Topics:
    """The flights' topics on a broker, with a prefix of their own, as is the workers' group. `folder`: for logs."""

    def __init__(self, bootstrap: str, prefix: str, folder: Path, name: str = "aircraft") -> None:
        self.bootstrap, self.prefix, self.folder, self.name = bootstrap, prefix, folder, name
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        made = self.admin.create_topics(
            [NewTopic(f"{prefix}{name}", PARTITIONS, 1) for name in ("snapshots", name, "dead_letters")]
        )
        for future in made.values():
            future.result(DEADLINE_S)

    def delete(self) -> None:
        """Delete the topic of derived records, and wait until the broker lists it no more."""
        topic = f"{self.prefix}{self.name}"
        (deleted,) = self.admin.delete_topics([topic]).values()
        deleted.result(DEADLINE_S)
        wait_until(lambda: topic not in self.admin.list_topics(timeout=DEADLINE_S).topics, f"no {topic}", DEADLINE_S)

    def publish(self, *snapshots: Snapshot) -> None:
        """Have these in the topic of snapshots."""
        producer = create_producer({"bootstrap.servers": self.bootstrap}, "test")
        for snapshot in snapshots:
            key, home = (
                window_key(snapshot.device_id, snapshot.first_seen),
                partition(snapshot.device_id.encode(), PARTITIONS),
            )
            producer.produce(f"{self.prefix}snapshots", key=key, value=snapshot.encode(), partition=home)
        assert producer.flush(DEADLINE_S) == 0

    def derived(self, enough: int, isolation: str = "read_committed") -> list[dict[str, Any]]:
        """So many derived records, or more; all of them in the order of their partitions."""
        settings = {"group.id": "reader", "enable.auto.commit": False, "isolation.level": isolation}
        consumer = Consumer({"bootstrap.servers": self.bootstrap, **settings})
        consumer.assign([TopicPartition(f"{self.prefix}{self.name}", number, 0) for number in range(PARTITIONS)])
        found: list[dict[str, Any]] = []

        def more() -> bool:
            found.extend(orjson.loads(one.value() or b"null") for one in consumer.consume(1000, 0.05))
            return len(found) >= enough

        wait_until(more, f"{enough} derived records", DEADLINE_S)
        consumer.close()
        return found

    def await_commits(self, snapshots: int) -> None:
        """Wait until the workers have committed so many snapshots: what follows does not derive them again."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": f"{self.prefix}derive"})
        partitions = [TopicPartition(f"{self.prefix}snapshots", number) for number in range(PARTITIONS)]

        def is_committed() -> bool:
            return sum(max(one.offset, 0) for one in consumer.committed(partitions, DEADLINE_S)) == snapshots

        wait_until(is_committed, f"{snapshots} snapshots are committed", DEADLINE_S)
        consumer.close()

    def worker(self, name: str = "derive", **settings: str) -> AbstractContextManager[Forked]:
        """Run a worker, with further settings; its log is `<name>.log`."""
        env = {
            "STATELOOP_KAFKA": self.bootstrap,
            "STATELOOP_APPLICATION": "tests.services.derive.prefixed:app",
            "STATELOOP_GROUP": f"{self.prefix}derive",
            "PREFIXED_PREFIX": self.prefix,
        }
        return running("services.derive", os.environ | env | settings, self.folder / f"{name}.log")

    def log(self, name: str = "derive") -> str:
        """Return the log of that worker."""
        return (self.folder / f"{name}.log").read_text(encoding="utf-8")


def flight(number: int, hour: int, version: int = 1) -> Snapshot:
    """A flight of the aircraft N1 that departed."""
    return Snapshot(
        device_id=f"flight-{number}",
        first_seen=MORNING.replace(hour=hour),
        version=version,
        as_of=MORNING,
        state={"tailnum": "N1", "status": "departed", "number": number},
    )
