"""The job as it is deployed, a process of its own, and the topics around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from prometheus_client.parser import text_string_to_metric_families

from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.options import create_producer
from services.tools.topics.__main__ import make
from services.tools.topics.settings import TopicsSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from contracts import Application
    from contracts.records.record import Record

CHECKOUT = Path(__file__).parents[2]
PARTITIONS = 2
PATIENCE_S = 240.0
PAUSE_PER_CPU = 4
"""A condition that reads a whole topic takes CPU from the processes that it waits for."""
PASSING = {"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT"}
"""Errors after which the client tries again."""


def until(condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S, pause_s: float = 0.1) -> Any:
    """Wait for a condition, and give what it gave. One that takes much CPU is evaluated less often."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        begin_s = time.process_time()
        if result := condition():
            return result
        time.sleep(pause_s and max(pause_s, PAUSE_PER_CPU * (time.process_time() - begin_s)))
    raise AssertionError(f"not within {patience_s:.0f} s: {what}")


started: list[Job] = []
"""The jobs of the present test: a fixture ends those that a failure leaves behind."""


class Job:
    """`stateloop job` with a checkpoint of its own.

    It publishes each record, also of a backlog: a test that wants a catch-up sets STATELOOP_CATCH_UP.
    """

    def __init__(
        self,
        kafka: str,
        folder: Path,
        application: str,
        environment: dict[str, str],
        command: tuple[str, ...] = (sys.executable, "-m", "spark_app"),
    ) -> None:
        self._command = command
        self.log = folder / "job.log"
        self.checkpoint = folder / "checkpoint"
        self.environment = (
            {"STATELOOP_CATCH_UP": "false", "STATELOOP_BATCH": "PT5S"}
            | environment
            | {
                "STATELOOP_APPLICATION": application,
                "STATELOOP_KAFKA": kafka,
                "STATELOOP_CHECKPOINT": str(folder / "checkpoint"),
                "STATELOOP_DRIVER_MEMORY": "1g",
            }
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Job:
        """Start the driver, without waiting."""
        started.append(self)
        with self.log.open("ab") as log:
            environment = os.environ | self.environment
            self._process = subprocess.Popen(self._command, cwd=CHECKOUT, env=environment, stdout=log, stderr=log)
        return self

    def epoch(self) -> int:
        """The epoch of the job's checkpoint."""
        activations = self.checkpoint.glob("stateloop.active.*")
        newest = max(activations, key=lambda path: int(path.suffix[1:]), default=self.checkpoint / "stateloop.json")
        return int(json.loads(newest.read_text(encoding="utf-8"))["epoch"])

    def lines(self, what: str) -> list[dict[str, Any]]:
        """Return the lines of one kind in the job's report."""
        if not self.log.exists():
            return []
        text = self.log.read_text(encoding="utf-8", errors="replace")
        reported = [json.loads(line) for line in text.splitlines() if line.startswith('{"job"')]
        return [line for line in reported if line["job"] == what]

    def batches(self, more: int = 1) -> list[dict[str, Any]]:
        """All batches, when this many more have been committed."""
        before = len(self.lines("batch"))
        until(lambda: self.ended() or len(self.lines("batch")) >= before + more, f"{more} batches, see {self.log}")
        assert not self.ended(), self.log.read_text(encoding="utf-8")[-3000:]
        return self.lines("batch")

    def figures(self) -> dict[tuple[str, ...], float]:
        """The job's own figures from /metrics, by name (without `stateloop_job_`) and labels; it must be healthy."""
        figures = self.metrics()
        assert [self.ask(path) for path in ("/healthz", "/readyz")] == ['{"ok": true}'] * 2
        return figures

    def metrics(self) -> dict[tuple[str, ...], float]:
        """The same of a job that need not be ready."""
        families = text_string_to_metric_families(self.ask("/metrics"))
        samples = [sample for family in families for sample in family.samples]
        return {
            (sample.name.removeprefix("stateloop_job_"), *sample.labels.values()): sample.value for sample in samples
        }

    def ask(self, path: str) -> str:
        """Return the response of the job's HTTP endpoint."""
        connection = HTTPConnection("127.0.0.1", self.lines("started")[-1]["http_port"], timeout=PATIENCE_S)
        connection.request("GET", path)
        try:
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def ended(self) -> bool:
        """Return whether the driver has ended."""
        return self._process is None or self._process.poll() is not None

    def wait(self) -> int:
        """The exit code of a driver that ends by itself."""
        assert self._process is not None
        return self._process.wait(PATIENCE_S)

    def kill(self) -> None:
        """Kill the driver as kill -9 does."""
        assert self._process is not None
        subprocess.run(["pkill", "-9", "-P", str(self._process.pid)], check=False)  # noqa: S607  # its JVM
        self._process.kill()
        self._process.wait()

    def signal(self, number: int) -> None:
        """Send a signal to the driver and its JVM."""
        assert self._process is not None
        subprocess.run(["pkill", f"-{number}", "-P", str(self._process.pid)], check=True)  # noqa: S607  # its JVM
        self._process.send_signal(number)

    def stop(self) -> int:
        """Stop the driver as an operator does; gives its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(PATIENCE_S)


def everything(kafka: str, topic: str) -> list[Message]:
    """All records that a topic holds now."""
    settings = {
        "group.id": "reader",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 10,
    }
    consumer = Consumer({"bootstrap.servers": kafka, **settings})
    partitions = [
        TopicPartition(topic, number, 0) for number in consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions
    ]
    consumer.assign(
        [TopicPartition(partition.topic, partition.partition, OFFSET_BEGINNING) for partition in partitions]
    )
    messages: list[Message] = []
    ended: set[int | None] = set()

    def read() -> bool:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, f"{topic} ends"
        if (error := message.error()) is None:
            messages.append(message)
        elif error.name() == "_PARTITION_EOF":
            ended.add(message.partition())
        elif error.fatal() or not (error.retriable() or error.name() in PASSING):
            raise KafkaException(error)
        return len(ended) == len(partitions)

    until(read, f"the end of {topic}", pause_s=0)
    consumer.close()
    return messages


class Topics:
    """The application's topics on a real broker."""

    def __init__(self, kafka: str, application: Application) -> None:
        self.kafka = kafka
        self.names = application.topics
        self._producer = create_producer(
            {"bootstrap.servers": kafka, "queue.buffering.max.messages": 1_000_000}, "test"
        )
        settings = TopicsSettings(application="", kafka=kafka, partitions=PARTITIONS)
        make(KafkaAdmin({"bootstrap.servers": kafka}, "test"), self.names.catalogue(application.state), settings)

    def send(self, topic: str, records: Iterable[Record]) -> None:
        """Send records, each with its own time."""
        for record in records:
            self._producer.produce(topic, key=record.key, value=record.value, timestamp=record.timestamp_ms)
        assert self._producer.flush(PATIENCE_S) == 0

    def delete_all(self, topic: str) -> None:
        """Delete the records that a topic holds now."""
        settings = {"bootstrap.servers": self.kafka, "group.id": "reader"}
        consumer, admin = Consumer(settings), AdminClient({"bootstrap.servers": self.kafka})
        partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        end_offsets = [consumer.get_watermark_offsets(partition, PATIENCE_S)[1] for partition in partitions]
        consumer.close()
        until_ends = [TopicPartition(topic, *partition) for partition in enumerate(end_offsets)]
        for deleted in admin.delete_records(until_ends).values():
            deleted.result(PATIENCE_S)

    def read(self, topic: str, least: int) -> list[Message]:
        """All that a topic holds, once it holds this many records."""
        consumer = Consumer({"bootstrap.servers": self.kafka, "group.id": "reader", "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        messages: list[Message] = []

        def enough() -> bool:
            messages.extend(message for message in consumer.consume(10_000, 0.2) if message.error() is None)
            return len(messages) >= least

        until(enough, f"{least} records on {topic}, now {len(messages)}")
        consumer.close()
        return messages
