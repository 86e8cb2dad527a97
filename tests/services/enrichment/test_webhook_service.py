"""Workers that deliver alerts, as processes on a real broker: killed, rebalanced, and with a receiver that fails."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from contracts.alerts.deliveries import events
from contracts.records.tables import encode_row
from contracts.wire import Snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import window_key
from services.runtime.kafka.clients import KafkaClients
from services.runtime.kafka.options import create_producer
from services.runtime.table_writer import TableWriter
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.forked import running
from tests.services.enrichment.alerted import APP, LIMITS, NOON, crossings
from tests.services.enrichment.cluster import condition
from tests.services.enrichment.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from contracts.wire.alert_record import AlertRecord
    from tests.forked import Forked
    from tests.services.tools.broker.embedded import EmbeddedBroker

PARTITIONS = 4
DEVICES = 100
SECRET = base64.b64encode(bytes(32)).decode()
SESSION = '{"session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}'


def calling(url: str) -> dict[str, str]:
    """The settings of the webhook."""
    return {
        "STATELOOP_APIS": json.dumps({"pager": url}),
        "STATELOOP_WEBHOOK_SECRETS": json.dumps({"pager": SECRET}),
    }


class Pagers:
    """The topics of the alerts on a broker, and workers of one group that deliver them."""

    def __init__(self, bootstrap: str, prefix: str, folder: Path) -> None:
        self.bootstrap, self.prefix, self.folder = bootstrap, prefix, folder
        self.topic, self.dead_letters = f"{prefix}too_high", f"{prefix}dead_letters"
        names = (self.topic, self.dead_letters, f"{prefix}snapshots", f"{prefix}limits")
        topics = [NewTopic(name, PARTITIONS, 1) for name in names]
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for future in admin.create_topics(topics).values():
            future.result(DEADLINE_S)
        self.started = 0

    def publish(self, records: Sequence[AlertRecord | Snapshot], topic: str = "too_high") -> None:
        producer = create_producer({"bootstrap.servers": self.bootstrap}, "test")
        for record in records:
            home = partition(record.device_id.encode(), PARTITIONS)
            producer.produce(
                f"{self.prefix}{topic}", record.encode(), window_key(record.device_id, record.first_seen), home
            )
        assert producer.flush(DEADLINE_S) == 0

    def worker(self, url: str) -> AbstractContextManager[Forked]:
        """A process that delivers alerts."""
        return self.process("services.enrichment", calling(url))

    def process(self, module: str, settings: Mapping[str, str], *arguments: str) -> AbstractContextManager[Forked]:
        """A process; killed at the end if it still runs."""
        self.started += 1
        environment = os.environ | {
            "ALERTED_PREFIX": self.prefix,
            "STATELOOP_APPLICATION": "tests.services.enrichment.alerted:APP",
            "STATELOOP_GROUP": f"{self.prefix}pagers",
            "STATELOOP_KAFKA": self.bootstrap,
            "STATELOOP_KAFKA_OPTIONS": SESSION,
            "STATELOOP_ALLOWED_NETWORKS": '["127.0.0.0/8"]',
            "STATELOOP_STATS_EVERY": "0.1",
            **settings,
        }
        return running(module, environment, self._log(), *arguments)

    def has_partitions(self) -> bool:
        """Whether the worker that started last has some."""
        lines = self.output().splitlines()
        return any(
            json.loads(line).get("partitions") for line in lines if '"message":"stats"' in line and line[-1] == "}"
        )

    def output(self) -> str:
        """The output of the process that started last."""
        return self._log().read_text("utf-8")

    def _log(self) -> Path:
        return self.folder / f"worker-{self.started}.log"

    def await_commits(self, records: int) -> None:
        """Wait until the offsets of all records are committed."""
        group = f"{self.prefix}pagers-too_high"
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        partitions = [TopicPartition(self.topic, number) for number in range(PARTITIONS)]

        def is_committed() -> bool:
            return sum(max(one.offset, 0) for one in consumer.committed(partitions, DEADLINE_S)) == records

        wait_until(is_committed, "all records are committed", DEADLINE_S)
        consumer.close()

    def dead_letter_count(self) -> int:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "reader"})
        partitions = [TopicPartition(self.dead_letters, number) for number in range(PARTITIONS)]
        end_offsets = [consumer.get_watermark_offsets(partition, DEADLINE_S)[1] for partition in partitions]
        consumer.close()
        return sum(end_offsets)


@pytest.mark.kafka
@pytest.mark.slow
async def test_killed_workers_and_a_failing_receiver_lose_no_event_and_keep_the_order(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    pagers, draw = Pagers(broker.bootstrap, topics_prefix, tmp_path), random.Random(7)
    first, second = crossings(DEVICES), crossings(DEVICES, (5, 7))
    expected = {event.idempotency_key: event for one in (*first, *second) for event in events("too_high", one)}
    receiver = Receiver(lambda: 503, seconds=0.005)

    async def accepted(count: int) -> None:
        await condition(lambda: len(receiver.accepted()) >= count, f"{count} events are accepted")

    async with receiver.serving():
        await asyncio.to_thread(pagers.publish, first)
        with pagers.worker(receiver.url) as worker:
            await condition(lambda: len(receiver.attempts) > 5, "the receiver has refused calls")
            assert receiver.accepted() == set()
            receiver.status = lambda: draw.choice([202, 202, 202, 503])
            await accepted(DEVICES // 2)
            worker.kill()
            await asyncio.to_thread(worker.wait, DEADLINE_S)
        with pagers.worker(receiver.url) as worker:
            await accepted(DEVICES)
            with pagers.worker(receiver.url) as other:
                await condition(pagers.has_partitions, "the last worker has taken over partitions")
                await asyncio.to_thread(pagers.publish, second)
                await accepted(5 * DEVICES)
                worker.terminate()
                assert await asyncio.to_thread(worker.wait, DEADLINE_S) == 0
                await accepted(len(expected))
                await asyncio.to_thread(pagers.await_commits, len(first) + len(second))
                other.terminate()
                assert await asyncio.to_thread(other.wait, DEADLINE_S) == 0

    assert receiver.accepted() == set(expected)
    contents = {(attempt.key, attempt.content) for attempt in receiver.attempts}
    assert len(contents) == len(expected)
    assert all(attempt.event == expected[attempt.key] for attempt in receiver.attempts)
    assert all(attempt.headers["webhook-signature"].startswith("v1,") for attempt in receiver.attempts)
    receiver.assert_ordered()
    assert pagers.dead_letter_count() == 0
    assert APP.webhook_group(APP.alerts[0]) == "sensors-too_high-webhook"


@pytest.mark.kafka
@pytest.mark.slow
async def test_a_snapshot_that_breaks_a_rule_becomes_a_call(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    pagers, devices = Pagers(broker.bootstrap, topics_prefix, tmp_path), [f"sensor-{number}" for number in range(20)]
    snapshots = [
        Snapshot(
            device_id=device,
            first_seen=NOON,
            version=version,
            as_of=NOON + timedelta(seconds=version),
            state={"value": value},
        )
        for version, value in enumerate((3, 9, 9, 4), start=1)
        for device in devices
    ]
    rule = encode_row(LIMITS, "high", '{"high": 8}', "ann")
    writer = TableWriter(KafkaClients({"bootstrap.servers": broker.bootstrap}))
    rule_version = await asyncio.to_thread(writer.write, f"{topics_prefix}limits", "high", rule, "ann")
    await asyncio.to_thread(pagers.publish, snapshots, "snapshots")
    async with Receiver().serving() as receiver:
        with pagers.process("services.derive", {}), pagers.worker(receiver.url):
            await condition(lambda: len(receiver.accepted()) >= 2 * len(devices), "all alerts are delivered")
    assert len(receiver.attempts) == 2 * len(devices)
    receiver.assert_ordered()
    found = sorted(
        (attempt.event.device_id, attempt.event.version, attempt.event.event) for attempt in receiver.attempts
    )
    assert found == sorted((device, *event) for device in devices for event in ((2, "opened"), (4, "closed")))
    assert {(attempt.event.rule, attempt.event.rule_version) for attempt in receiver.attempts} == {
        ("high", rule_version)
    }
    assert all(attempt.key == attempt.event.idempotency_key for attempt in receiver.attempts)
