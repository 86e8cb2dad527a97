"""Topics, records and worker processes for the tests against a real broker."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from contracts.wire import Feedback
from contracts.wire.partition import partition
from contracts.wire.window_key import window_key
from services.runtime.kafka.options import create_consumer, create_producer
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.forked import running
from tests.services.enrichment.fleet import application

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from contracts.wire import Snapshot
    from tests.forked import Forked

STARTING = {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"}
"""The errors of a broker that has yet to read the offsets of its groups."""
PARTITIONS = 4
Settings = dict[str, str]
GROUPS: dict[str, Settings] = {
    "classic": {},
    "consumer": {"group_protocol": "consumer", "kafka_options": "{}"},
}
"""The settings by group protocol; under KIP-848 the broker sets the session timeout."""
KEPT = {"retention.ms": "-1"}
"""Feedback has the time of its snapshot, here long ago: the broker would soon delete it during a test."""


class Cluster:
    """One application's topics on a broker."""

    def __init__(self, bootstrap: str, prefix: str, logs: Path) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.topics = application(prefix).topics
        self.group = application(prefix).enrichment_group
        self._logs = logs
        self._started = 0
        names = (self.topics.snapshots, self.topics.feedback, self.topics.dead_letters)
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._offsets = create_consumer({"bootstrap.servers": bootstrap}, "test", self.group)
        self.create(*names)

    def create(self, *names: str) -> None:
        """Create topics; returns when the broker lists them."""
        topics = [NewTopic(name, PARTITIONS, 1, config=KEPT) for name in names]
        for future in self._admin.create_topics(topics).values():
            future.result(DEADLINE_S)
        wait_until(lambda: {*names} <= self.listed(), "the broker lists the new topics", DEADLINE_S)

    def listed(self) -> set[str]:
        """The topics that the broker lists; it lists a topic some time after the controller has created it."""
        return set(self._admin.list_topics(timeout=DEADLINE_S).topics)

    def delete(self, *topics: str) -> None:
        """Delete topics; returns when the broker lists them no longer."""
        for future in self._admin.delete_topics([*topics]).values():
            future.result(DEADLINE_S)
        wait_until(lambda: not {*topics} & self.listed(), "the broker lists the deleted topics no longer", DEADLINE_S)

    def publish(self, *snapshots: Snapshot) -> None:
        """Produce snapshots as the job does."""
        producer = create_producer({"bootstrap.servers": self.bootstrap}, "test")
        for snapshot in snapshots:
            key, home = (
                window_key(snapshot.device_id, snapshot.first_seen),
                partition(snapshot.device_id.encode(), PARTITIONS),
            )
            producer.produce(self.topics.snapshots, snapshot.encode(), key, home)
        assert producer.flush(DEADLINE_S) == 0

    def produce(self, *records: tuple[str, bytes | None]) -> None:
        """Produce any records by their keys."""
        large = {"message.max.bytes": 64_000_000, "compression.type": "gzip"}
        producer = create_producer({"bootstrap.servers": self.bootstrap, **large}, "test")
        for key, value in records:
            producer.produce(self.topics.snapshots, key=key, value=value)
        assert producer.flush(DEADLINE_S) == 0

    def read(self, topic: str, enough: Callable[[list[Any]], bool]) -> list[Any]:
        """Return the values in a topic, once `enough` accepts them."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "reader",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",  # the default skips all records where an offset is refused
            }
        )
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        found: list[Any] = []

        def more() -> bool:
            found.extend(json.loads(one.value() or b"null") for one in consumer.consume(1000, 0.05))
            return enough(found)

        wait_until(more, f"enough in {topic}", DEADLINE_S)
        consumer.close()
        return found

    def feedback(self, enough: Callable[[list[Feedback]], bool]) -> list[Feedback]:
        found: list[Feedback] = []

        def decoded(values: list[Any]) -> bool:
            found.extend(Feedback.model_validate(value) for value in values[len(found) :])
            return enough(found)

        self.read(self.topics.feedback, decoded)
        return found

    def committed(self) -> int:
        """Return the sum of the committed offsets. A broker that has just started gives none for a while."""
        wanted = [TopicPartition(self.topics.snapshots, partition) for partition in range(PARTITIONS)]
        retrying = Retrying(
            retry=retry_if_exception(_is_starting),
            stop=stop_after_delay(DEADLINE_S),
            wait=wait_fixed(0.1),
            reraise=True,
        )
        found = retrying(self._offsets.committed, wanted, DEADLINE_S)
        return sum(max(one.offset, 0) for one in found)

    def worker(self, api: str, **settings: str) -> AbstractContextManager[Forked]:
        """A worker process; killed at the end if it still runs."""
        environment = {
            "FLEET_PREFIX": self.prefix,
            "FLEET_TIMEOUT_S": str(DEADLINE_S),
            "STATELOOP_APPLICATION": "tests.services.enrichment.fleet:app",
            "STATELOOP_KAFKA": self.bootstrap,
            "STATELOOP_KAFKA_OPTIONS": '{"session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}',
            "STATELOOP_ALLOWED_NETWORKS": '["127.0.0.0/8"]',
            "STATELOOP_APIS": json.dumps({"registry": api}),
            **{f"STATELOOP_{name.upper()}": value for name, value in settings.items()},
        }
        log = self._logs / f"worker-{self._started}.log"
        self._started += 1
        return running("services.enrichment", os.environ | environment, log)

    def log(self) -> str:
        """Return the logs of all workers."""
        return "".join(self._log(number) for number in range(self._started))

    def stats(self, metric: str) -> dict[int, Any]:
        """The last logged value of a metric, by the number of the worker; without workers that have logged none."""
        found = {}
        for number in range(self._started):
            lines = self._log(number).splitlines(keepends=True)
            if stats := [line for line in lines if '"message":"stats"' in line and line.endswith("\n")]:
                found[number] = json.loads(stats[-1])[metric]
        return found

    def _log(self, number: int) -> str:
        return (self._logs / f"worker-{number}.log").read_text()


def _is_starting(error: BaseException) -> bool:
    return isinstance(error, KafkaException) and error.args[0].name() in STARTING


async def condition(true: Callable[[], bool], what: str) -> None:
    """Wait until a condition is true, without blocking the event loop."""
    await asyncio.to_thread(wait_until, true, what, DEADLINE_S)
