"""Sinks as processes, between a real broker and real stores, all of which are killed in the middle."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from contracts.sinks import Target, Windows
from contracts.testing.stores import StoredRow
from contracts.wire import DeadLetter, Snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import window_key
from services.runtime.kafka.options import create_producer
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.forked import running
from tests.queried import ask
from tests.services.sink.records import NOW_US, START
from tests.services.sink.servers import free_port

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.forked import Forked
    from tests.services.sink.servers import PostgresqlServer, RedisServer, Server
    from tests.services.tools.broker.embedded import EmbeddedBroker

PARTITIONS = 4
KEYS = 50
PASSWORD = "hunter2"  # noqa: S105  # what no log may contain


class Loop:
    """The topics of one test, and the sinks that read them."""

    def __init__(self, bootstrap: str, prefix: str, folder: Path) -> None:
        self.bootstrap, self.prefix, self.folder = bootstrap, prefix, folder
        self.published: list[Snapshot] = []
        names = ("snapshots", "aircraft", "dead_letters")
        topics = [NewTopic(f"{prefix}{name}", PARTITIONS, 1) for name in names]
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for future in admin.create_topics(topics).values():
            future.result(DEADLINE_S)
        self._producer = create_producer({"bootstrap.servers": bootstrap}, "test")

    def publish(self, snapshots: Iterable[Snapshot]) -> None:
        for snapshot in snapshots:
            self.published.append(snapshot)
            self.produce(snapshot.device_id, window_key(snapshot.device_id, snapshot.first_seen), snapshot.encode())

    def produce(self, device: str, key: bytes, value: bytes) -> None:
        home = partition(device.encode(), PARTITIONS)
        self._producer.produce(f"{self.prefix}snapshots", key=key, value=value, partition=home)
        self._producer.poll(0)

    def flush(self) -> None:
        assert self._producer.flush(DEADLINE_S) == 0

    def expected(self) -> list[StoredRow]:
        newest: dict[str, Snapshot] = {}
        for one in sorted(self.published, key=lambda one: (one.first_seen, one.epoch, one.version)):
            newest[one.device_id] = one
        return sorted(_row(one) for one in newest.values())

    def target(self) -> Target:
        return Target(f"{self.prefix}flights", f"{self.prefix}snapshots", Windows.NEWEST)

    def sink(self, name: str, url: str, **settings: str) -> AbstractContextManager[Forked]:
        environment = {
            "STATELOOP_KAFKA": self.bootstrap,
            "STATELOOP_APPLICATION": "tests.services.derive.prefixed:app",
            "STATELOOP_SINK_STATES": '["flights"]',
            "STATELOOP_SINK_URL": url,
            "STATELOOP_SINK_PREFIX": self.prefix,
            "STATELOOP_SINK_BATCH": "50",
            "STATELOOP_GROUP": f"{self.prefix}{name}",
            "PREFIXED_PREFIX": self.prefix,
        }
        return running("services.sink", os.environ | environment | settings, self.folder / f"{name}.log")

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(encoding="utf-8")

    def dead_letters(self, enough: int) -> list[DeadLetter]:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "reader"})
        consumer.assign([TopicPartition(f"{self.prefix}dead_letters", number, 0) for number in range(PARTITIONS)])
        found: list[DeadLetter] = []

        def more() -> bool:
            found.extend(DeadLetter.model_validate_json(one.value() or b"") for one in consumer.consume(100, 0.05))
            return len(found) >= enough

        wait_until(more, f"{enough} dead letters", DEADLINE_S)
        consumer.close()
        return found

    def committed(self, name: str) -> int:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": f"{self.prefix}{name}-flights"})
        partitions = [TopicPartition(f"{self.prefix}snapshots", number) for number in range(PARTITIONS)]
        found = sum(max(0, one.offset) for one in consumer.committed(partitions, DEADLINE_S))
        consumer.close()
        return found


def _row(snapshot: Snapshot) -> StoredRow:
    start_us = NOW_US + (snapshot.first_seen - START) // timedelta(microseconds=1)
    value = json.loads(snapshot.encode())
    return StoredRow(snapshot.device_id, start_us, snapshot.epoch, snapshot.version, 0, value)


def flights(seed: int, count: int) -> list[Snapshot]:
    """Versions of two windows and epochs in any order, some of them several times."""
    choose = random.Random(seed)
    return [
        Snapshot(
            device_id=f"flight-{choose.randrange(KEYS)}",
            first_seen=START + timedelta(hours=choose.randrange(2)),
            epoch=choose.randrange(2),
            version=choose.randrange(1, 40),
            as_of=START,
            state={"text": "é" * 50},
        )
        for _ in range(count)
    ]


def complete_rows(server: RedisServer | PostgresqlServer, target: Target, expected: list[StoredRow]) -> None:
    """Wait until a store has these rows, and no others: its partitions are written independently of each other."""
    wait_until(lambda: sorted(server.found(target)) == sorted(expected), f"all rows in {server}", DEADLINE_S)


@pytest.mark.slow
def test_killed_sinks_and_stores_have_the_rows_of_the_fold(
    broker: EmbeddedBroker,
    topics_prefix: str,
    tmp_path: Path,
    redis_server: RedisServer,
    postgresql_server: PostgresqlServer,
) -> None:
    loop = Loop(broker.bootstrap, topics_prefix, tmp_path)
    servers: dict[str, Server] = {"redis": redis_server, "postgresql": postgresql_server}
    urls = {"redis": redis_server.url, "postgresql": postgresql_server.url.replace("@", f":{PASSWORD}@")}
    target, last = loop.target(), flights(0, 1)[0].model_copy(update={"device_id": "last", "version": 1})

    def written(number: int) -> None:
        """Publish a version of one device, and wait until both stores have it."""
        loop.publish([last.model_copy(update={"version": number})])
        loop.flush()
        for server in (redis_server, postgresql_server):
            wait_until(
                lambda server=server: any(  # type: ignore[misc]
                    (one.key, one.version) == ("last", number) for one in server.found(target)
                ),
                f"version {number} in {type(server).__name__}",
                DEADLINE_S,
            )

    with loop.sink("redis", urls["redis"]) as one, loop.sink("postgresql", urls["postgresql"]) as two:
        loop.publish(flights(1, 1000))
        written(1)
        loop.publish(flights(2, 2000))
        loop.flush()
        for process in (one, two):
            process.kill()
    port = free_port()
    with (
        loop.sink("redis", urls["redis"], STATELOOP_HTTP_PORT=str(port)) as one,
        loop.sink("postgresql", urls["postgresql"]) as two,
    ):
        written(2)
        loop.publish(flights(3, 2000))
        loop.flush()
        for server in servers.values():
            server.kill()
        loop.publish(flights(4, 1000))
        loop.flush()
        wait_until(lambda: ask(port, "/readyz")[0] == 503, "a sink that reports the outage", DEADLINE_S)
        assert "the store has been unavailable" in ask(port, "/readyz")[1]
        assert ask(port, "/healthz")[0] == 200
        for server in servers.values():
            server.start()
        loop.produce("flight-1", b"flight-1", b'{"device_id": 1}')
        refused = last.model_copy(update={"device_id": "refused", "state": {"text": "\0"}})
        loop.produce("last", b"refused", refused.encode())
        written(4)
        complete_rows(postgresql_server, target, loop.expected())
        complete_rows(redis_server, target, sorted([*loop.expected(), _row(refused)]))
        for server in (redis_server, postgresql_server):
            asyncio.run(server.empty(target))
        loop.publish([last.model_copy(update={"version": 5})])
        loop.flush()
        for server in (redis_server, postgresql_server):
            complete_rows(server, target, [*loop.expected(), *([_row(refused)] if server is redis_server else [])])
        found = loop.dead_letters(3)
        assert {one.reason for one in found} == {"not_stored"}
        details = {(one.detail or "").partition(":")[0] for one in found}
        assert details == {"device_id is not a string", "UntranslatableCharacter"}
        assert "stateloop_sink_outage_seconds" in ask(port, "/metrics")[1]
        for process in (one, two):
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_S) == 0
    records = len(loop.published) + 2
    assert (loop.committed("redis"), loop.committed("postgresql")) == (records, records)
    assert PASSWORD not in loop.log("postgresql")


def test_a_sink_without_a_broker_or_a_store_can_be_stopped(topics_prefix: str, tmp_path: Path) -> None:
    loop = Loop.__new__(Loop)
    loop.bootstrap, loop.prefix, loop.folder = "127.0.0.1:1", topics_prefix, tmp_path
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/db"
        with loop.sink("silent", url, STATELOOP_SINK_TIMEOUT="0.3") as process:
            wait_until(lambda: "the store is unavailable" in loop.log("silent"), "a sink that waits", DEADLINE_S)
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_S) == 0


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"STATELOOP_SINK_URL": "mysql://user:hunter2@host"}, "no store for URLs that begin with 'mysql'"),
        ({"STATELOOP_SINK_URL": "file:/nowhere/url"}, "the file /nowhere/url, which cannot be read"),
        (
            {"STATELOOP_SINK_STATES": '["flight"]'},
            "no state 'flight': write STATELOOP_SINK_STATES with names of flights",
        ),
        ({"STATELOOP_SINK_STORE": "services.sink:nothing"}, "has no 'nothing'"),
    ],
)
def test_settings_that_cannot_work_stop_it_with_a_remedy(
    settings: dict[str, str], problem: str, topics_prefix: str, tmp_path: Path
) -> None:
    loop = Loop.__new__(Loop)
    loop.bootstrap, loop.prefix, loop.folder = "127.0.0.1:1", topics_prefix, tmp_path
    with loop.sink("wrong", "redis://host", **settings) as process:
        assert process.wait(DEADLINE_S) == 1
    assert problem in loop.log("wrong")
    assert PASSWORD not in loop.log("wrong")
