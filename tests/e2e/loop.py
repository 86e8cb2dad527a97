"""An application's topics on a real broker, and processes of its services."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from contracts.wire import Snapshot
from services.runtime.kafka.options import create_producer
from tests.e2e.times import now
from tests.forked import Forked
from tests.services.query.ingest.ingesting import COMPACTED
from tests.spark_app.running import PATIENCE_S, everything, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from confluent_kafka import Message

    from tests.services.tools.broker.embedded import EmbeddedBroker

PARTITIONS = 2
BY_KEY = -1
PAD = b"pad"
"""The key of the records that only close segments."""

CLEANING = {"log.cleaner.backoff.ms": "500"}
"""How often the broker looks for what to compact: every 15 s by default."""


class Loop:
    """The topics of `windows.app`, or of another application that has them, and what runs on them."""

    def __init__(
        self, broker: EmbeddedBroker, prefix: str, folder: Path, application: str, partitions: int = PARTITIONS
    ) -> None:
        self.bootstrap, self.prefix, self.folder = broker.bootstrap, prefix, folder
        self.partitions = partitions
        self.environment = {
            "WINDOWS_PREFIX": prefix,
            "STATELOOP_APPLICATION": application,
            "STATELOOP_KAFKA": broker.bootstrap,
            "STATELOOP_BATCH": "PT15S",  # the end of each batch takes seconds of CPU
        }
        self.run("services.tools.topics", partitions=str(partitions))
        self.connect()

    def connect(self) -> None:
        """Send with a new producer, which knows the partitions that there are now."""
        self._producer = create_producer({"bootstrap.servers": self.bootstrap}, "test")

    def run(self, module: str, **settings: str) -> None:
        """Run a command to its end."""
        assert self.start(module, **settings).wait(PATIENCE_S) == 0, self.log(module).read_text(encoding="utf-8")

    def start(self, module: str, log_name: str | None = None, **settings: str) -> Forked:
        """Start a service, whose log has its name, or the given one."""
        environment = os.environ | self.environment | {"STATELOOP_GROUP": self.group(module)} | _named(settings)
        return Forked.module(module, environment, self.log(log_name or module))

    def log(self, name: str) -> Path:
        """The file of a service's log."""
        return self.folder / f"{name}.log"

    @contextmanager
    def service(self, module: str, **settings: str) -> Iterator[None]:
        """Run a service in the background; stop it as an operator does."""
        process = self.start(module, **settings)
        try:
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_S)

    def worker(self, registry: str, **settings: str) -> Any:
        """Run an enrichment worker that calls this API."""
        apis = {"apis": json.dumps({"registry": registry}), "allowed_networks": '["127.0.0.0/8"]'}
        return self.service("services.enrichment", **apis, **settings)

    def send(self, topic: str, key: bytes | str, value: bytes, number: int = BY_KEY) -> None:
        """Write a record."""
        self._producer.produce(f"{self.prefix}{topic}", value, key, number)
        assert self._producer.flush(30) == 0

    def records(self, topic: str) -> list[Message]:
        """All that a topic holds, but for pads and tombstones."""
        messages = everything(self.bootstrap, f"{self.prefix}{topic}")
        return [message for message in messages if message.key() != PAD and message.value() is not None]

    def lag(self, module: str, topic: str) -> int:
        """Return how many records of a topic a service has not finished."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.group(module)})
        partitions = [TopicPartition(f"{self.prefix}{topic}", number) for number in range(self.partitions)]
        end_offsets = [consumer.get_watermark_offsets(partition, PATIENCE_S)[1] for partition in partitions]
        done = [max(0, position.offset) for position in consumer.committed(partitions, PATIENCE_S)]
        consumer.close()
        return sum(end_offsets) - sum(done)

    def compact(self, topic: str) -> None:
        """Have the broker compact a topic as soon as it can."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})  # has to live until all is answered
        (broker,) = admin.list_topics(timeout=PATIENCE_S).brokers
        resources = [
            ConfigResource(kind, name, incremental_configs=[*map(_set, settings, settings.values())])
            for kind, name, settings in (
                (ConfigResource.Type.BROKER, str(broker), CLEANING),
                (ConfigResource.Type.TOPIC, f"{self.prefix}{topic}", COMPACTED),
            )
        ]
        for altered in admin.incremental_alter_configs(resources).values():
            altered.result(30)

    def compacted(self, topic: str, left: int) -> list[Message]:
        """Wait until the broker has `left` records left; each write may close a segment."""

        def enough() -> list[Message] | None:
            pad = Snapshot(device_id=PAD.decode(), first_seen=now(), version=1, as_of=now(), state={})
            for number in range(self.partitions):
                self.send(topic, PAD, pad.encode() if topic == "snapshots" else b"{}", number)
            messages = self.records(topic)
            return messages if len(messages) <= left else None

        messages: list[Message] = until(enough, f"{left} records on {topic} after compaction")
        return messages

    def group(self, module: str) -> str:
        """The consumer group of a service."""
        return f"{self.prefix}{module}"


def _set(name: str, value: str) -> ConfigEntry:
    return ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)


def _named(settings: dict[str, str]) -> dict[str, str]:
    return {f"STATELOOP_{name.upper()}": value for name, value in settings.items()}


def ask(port: str, path: str) -> dict[str, Any] | None:
    """A state, once it is there."""
    connection = HTTPConnection("127.0.0.1", int(port), timeout=10)
    try:
        connection.request("GET", f"/v1/states/{path}")
        response = connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
    except (OSError, ValueError):
        return None
    else:
        return answer if response.status == HTTPStatus.OK else None
    finally:
        connection.close()
