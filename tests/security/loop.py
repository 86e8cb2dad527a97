"""The parts of the loop as processes, each with a login, a password and the rights of its own on the secured broker."""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from unittest.mock import patch

from confluent_kafka import Consumer, TopicPartition

from contracts.model.suite import load_suite
from contracts.testing.memory_store import MemoryStore
from services.runtime.kafka.options import create_producer
from services.tools.broker.readiness import wait_until
from services.tools.cli.acls import Acl, Part, acls
from tests.deadline import DEADLINE_S
from tests.forked import Forked
from tests.services.tools.broker.embedded import free_ports
from tests.spark_app.hosted import HostedJob, imported_anew

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from contracts import Suite
    from contracts.sinks import SinkStore, Target
    from tests.security.api import Registry
    from tests.security.broker import SecuredBroker

APPLICATION = "tests.security.application:app"
MODULES = {
    Part.TOPICS: "services.tools.topics",
    Part.JOB: "spark_app",
    Part.WORKER: "services.enrichment",
    Part.DERIVE: "services.derive",
    Part.SINK: "services.sink",
    Part.QUERY: "services.query",
}
COMMANDS = "services.tools.cli"
RUNNING = (Part.WORKER, Part.DERIVE, Part.SINK, Part.QUERY)


def memory_store(_: str, target: Target) -> SinkStore:
    """Return the store of the sink."""
    return MemoryStore(target)


class SecuredLoop:
    """The users, topics and processes of one test."""

    def __init__(self, broker: SecuredBroker, prefix: str, folder: Path, api: Registry) -> None:
        self.broker, self.prefix, self.folder, self.api = broker, prefix, folder, api
        self.listeners = dict.fromkeys(Part, "SECURED")
        names = ("api", "webhook", "reader", "peer", "store", *Part)
        self.secrets = {name: f"canary-{name}-{secrets.token_hex(16)}" for name in names}
        self.secrets["webhook"] = base64.b64encode(self.secrets["webhook"].encode()).decode()
        self.processes: dict[Part, Forked] = {}
        self.job: HostedJob | None = None
        self.ports = dict(zip(Part, range(free_ports(len(Part)), 65536), strict=False))
        tokens = {"tokens": [{"name": "reader", "token": self.secrets["reader"], "writes": ["*"]}]}
        (folder / "tokens.json").write_text(json.dumps(tokens))
        (folder / "webhook").write_text(f"whsec_{self.secrets['webhook']}")
        self.suite = self._suite()
        for part in Part:
            self.broker.add_user(self.user(part), self.secrets[part])

    def user(self, part: Part) -> str:
        """Return the name of a part's user."""
        return f"{self.prefix}{part}"

    def rights(self, part: Part) -> list[Acl]:
        """Return the rights that the product computes for a part."""
        with patch.dict(os.environ, self.environment(part)):
            return acls(part, self.suite)

    def grant(self, *parts: Part) -> None:
        """Grant parts their rights, and none beyond them."""
        for part in parts:
            self.broker.grant(self.user(part), self.rights(part))

    def environment(self, part: Part) -> dict[str, str]:
        """Return the environment of a part."""
        listener = self.listeners[part]
        password = "" if part is Part.JOB and listener == "MUTUAL" else self.secrets[part]  # Java decrypts no such key
        return {
            **self.broker.settings(self.user(part), password, listener),
            "SECURITY_PREFIX": self.prefix,
            "STATELOOP_APPLICATION": APPLICATION,
            "STATELOOP_APIS": json.dumps({"registry": self.api.url, "pager": self.api.url}),
            "STATELOOP_API_HEADERS": json.dumps({"registry": {"Authorization": f"Bearer {self.secrets['api']}"}}),
            "STATELOOP_WEBHOOK_SECRETS": json.dumps({"pager": f"file:{self.folder / 'webhook'}"}),
            "STATELOOP_ALLOWED_NETWORKS": '["127.0.0.0/8"]',
            "STATELOOP_SINK_STORE": "tests.security.loop:memory_store",
            "STATELOOP_SINK_URL": f"memory://sink:{self.secrets['store']}@host",
            "STATELOOP_TOKENS": str(self.folder / "tokens.json"),
            "STATELOOP_PEER_TOKEN": self.secrets["peer"],
            "STATELOOP_QUERY_DATA": str(self.folder / "query"),
            "STATELOOP_SCRAPE_TARGETS": json.dumps(self._targets()),
            "STATELOOP_INSTANCE": "one",
            "STATELOOP_HTTP_PORT": str(self.ports[part]),
        }

    def run(self, part: Part, *arguments: str) -> int:
        """Run a part, or a command as its user, to the end; return the exit code. Its output is in the part's log."""
        return self.process(part, *arguments).wait(DEADLINE_S)

    def process(self, part: Part, *arguments: str) -> Forked:
        """Start a process of a part."""
        module = COMMANDS if arguments else MODULES[part]
        return Forked.module(module, os.environ | self.environment(part), self.log_file(part), *arguments)

    def start(self, *parts: Part) -> None:
        """Start processes that run until `stop`."""
        self.processes |= {part: self.process(part) for part in parts}

    def start_job(self, spark: SparkSession) -> HostedJob:
        """Start the job in the JVM of the tests, with the options of its own login."""
        environment = self.environment(Part.JOB)  # batches of 5 s: a busy machine may connect for longer than one
        self.job = HostedJob(spark, environment["STATELOOP_KAFKA"], self.folder, APPLICATION, environment)
        return self.job.start()

    def stop(self) -> None:
        """Stop all that runs."""
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        if self.job is not None:
            self.job.stop()
        for process in self.processes.values():
            process.wait(DEADLINE_S)

    def log_file(self, part: Part) -> Path:
        """Return the file of what the processes of a part print."""
        return self.folder / f"{part}.log"

    def log(self, part: Part) -> str:
        """Return what the processes of a part have printed."""
        return self.log_file(part).read_text(encoding="utf-8")

    def see(self, device: str, plate: str, number: int = 1) -> None:
        """Send a sighting, as a device does."""
        event = {
            "device_id": device,
            "event_id": f"{device}-{number}",
            "first_seen": datetime.now(UTC).replace(minute=0, second=0, microsecond=0).isoformat(),
            "ts": datetime.now(UTC).isoformat(),
            "plate": plate,
        }
        self.send(device, json.dumps(event))

    def send(self, device: str, event: str) -> None:
        """Send a record of events."""
        producer = create_producer(self.broker.client, "test")
        producer.produce(f"{self.prefix}events", event.encode(), device)
        assert producer.flush(DEADLINE_S) == 0

    def ask(self, part: Part, path: str) -> tuple[int, str]:
        """Return the status and the body of a response of a part; 0 without one."""
        headers = {"Authorization": f"Bearer {self.secrets['reader']}"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports[part]}{path}", headers=headers)  # our own
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE_S) as response:  # noqa: S310  # our own
                return response.status, str(response.read(), "utf-8")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, str(error.read(), "utf-8")
        except OSError:
            return 0, ""

    def state(self, name: str, key: str) -> dict[str, object]:
        """Return the record of a key, as the query service has it; empty without one."""
        status, body = self.ask(Part.QUERY, f"/v1/states/{name}/{key}")
        found: dict[str, object] = json.loads(body) if status == 200 else {}
        return found

    def committed(self, group: str, topic: str) -> int:
        """Return the sum of the committed offsets of a group."""
        consumer = Consumer({**self.broker.client, "group.id": group, "enable.auto.commit": False})
        found = consumer.committed([TopicPartition(topic, number) for number in range(2)], DEADLINE_S)
        consumer.close()
        return sum(max(0, place.offset) for place in found)

    def records(self) -> dict[str, list[str]]:
        """Return what all topics have now."""
        consumer = Consumer({**self.broker.client, "group.id": "reader", "enable.auto.commit": False})
        found: dict[str, list[str]] = {}
        for topic, described in consumer.list_topics(timeout=DEADLINE_S).topics.items():
            if not topic.startswith(self.prefix):
                continue
            found[topic] = []
            for number in described.partitions:
                end = consumer.get_watermark_offsets(TopicPartition(topic, number), DEADLINE_S)[1]
                consumer.assign([TopicPartition(topic, number, 0)])
                while consumer.position([TopicPartition(topic, number)])[0].offset < end and end:
                    if (message := consumer.poll(1.0)) is not None and message.error() is None:
                        found[topic].append(f"{message.key()!r} {message.value()!r} {message.headers()!r}")
        consumer.close()
        return found

    def until(self, condition: Callable[[], object], described: str) -> None:
        """Wait for a condition. A part that ends meanwhile, or a deadline, fails with the ends of the logs."""
        ended: list[Part] = []

        def holds() -> bool:
            ended[:] = [part for part, process in self.processes.items() if process.poll() is not None]
            time.sleep(0.1)
            return bool(ended) or bool(condition())

        try:
            wait_until(holds, described, DEADLINE_S)
            assert not ended
        except Exception as error:
            for part in (*self.processes, Part.JOB):
                path = self.log_file(part)
                error.add_note(f"{part}:\n{path.read_text()[-3000:] if path.exists() else ''}")
            raise

    def _targets(self) -> dict[str, list[str]]:
        return {part: [f"http://127.0.0.1:{self.ports[part]}"] for part in (Part.WORKER, Part.DERIVE, Part.SINK)}

    def _suite(self) -> Suite:
        with patch.dict(os.environ, {"SECURITY_PREFIX": self.prefix}):
            return load_suite(imported_anew(APPLICATION))
