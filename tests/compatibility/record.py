"""Records what a release writes: `python tests/compatibility/record.py CHECKOUT FOLDER`, with the release's checkout.

It runs the loop of that release on a broker of its own, with the application `recorded`, and stores the records of all
topics and the checkpoint in the folder. The tests read them with the present code.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
PREFIX = "recorded."
PORT = 29_292
KAFKA = f"127.0.0.1:{PORT}"
TOPICS = ("events", "feedback", "snapshots", "dead_letters", "plates")
PARTITIONS, COURIERS, PINGS = 2, 6, 3
START = datetime(2026, 5, 1, 8, tzinfo=UTC)
PATIENCE_S = 240
UNKNOWN, REFUSED = "X1", "X2"
"""Plates without an owner, and whose owner the registry refuses to give."""


class Registry(BaseHTTPRequestHandler):
    """An API of owners."""

    def do_GET(self) -> None:
        """Return the owner of a plate."""
        plate = self.path.rpartition("/")[2]
        self.send_response({UNKNOWN: 404, REFUSED: 403}.get(plate, 200))
        content = json.dumps({"name": f"owner of {plate}"}).encode()
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def events() -> list[dict[str, Any]]:
    """Return the pings of all couriers."""
    plates = {0: UNKNOWN, 1: REFUSED}
    return [
        {
            "device_id": f"courier-{courier}",
            "event_id": str(number),
            "first_seen": START.isoformat(),
            "ts": (START + timedelta(minutes=number)).isoformat(),
            "speed": 10.5 * courier + number,
            "plate": plates.get(courier, f"P{courier}"),
        }
        for number in range(PINGS)
        for courier in range(COURIERS)
    ]


def main(checkout: Path, folder: Path) -> None:
    """Record."""
    folder.mkdir(parents=True, exist_ok=True)
    server = HTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as data, ExitStack() as running:
        environment = os.environ | {
            "PYTHONPATH": f"{HERE}:{checkout}",
            "RECORDED_PREFIX": PREFIX,
            "STATELOOP_APPLICATION": "recorded:app",
            "STATELOOP_KAFKA": KAFKA,
            "STATELOOP_CHECKPOINT": f"{data}/checkpoint",
            "STATELOOP_BATCH": "PT5S",
            "STATELOOP_CATCH_UP": "false",
            "STATELOOP_DRIVER_MEMORY": "1g",
            "STATELOOP_APIS": json.dumps({"registry": f"http://127.0.0.1:{server.server_port}"}),
            "STATELOOP_ALLOWED_NETWORKS": '["127.0.0.0/8"]',
            "STATELOOP_BROKER_DATA": f"{data}/broker",
            "STATELOOP_BROKER_PORT": str(PORT),
        }

        def start(module: str) -> subprocess.Popen[bytes]:
            log = running.enter_context((folder / f"{module}.log").open("wb"))
            command = [sys.executable, "-m", module]
            process = subprocess.Popen(command, cwd=checkout, env=environment, stdout=log, stderr=log)
            running.callback(process.wait, PATIENCE_S)
            running.callback(process.terminate)
            return process

        start("services.tools.broker")
        until(lambda: Producer({"bootstrap.servers": KAFKA, "log_level": 0}).list_topics(timeout=2), "a broker")
        subprocess.run([sys.executable, "-m", "services.tools.topics"], cwd=checkout, env=environment, check=True)
        job = start("spark_app")
        start("services.enrichment")
        start("services.derive")
        send(events())
        until(lambda: len(records("feedback")) >= COURIERS, "an answer for each courier")
        until(lambda: len(merged()) == COURIERS, "snapshots with the answers")
        until(
            lambda: len(records("plates")) > 0 and len(records("dead_letters")) > 1, "derived records and dead letters"
        )
        time.sleep(12)  # two batches
        job.send_signal(signal.SIGTERM)
        job.wait(PATIENCE_S)
        for topic in TOPICS:
            lines = [json.dumps(record) for record in records(topic)]
            (folder / f"{topic}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        archive(Path(data, "checkpoint"), folder)
    for log in folder.glob("*.log"):
        log.unlink()


def send(pings: list[dict[str, Any]]) -> None:
    """Send the events, and one that is refused."""
    producer = Producer({"bootstrap.servers": KAFKA, "partitioner": "murmur2_random"})
    for ping in pings:
        stamp = round(datetime.fromisoformat(ping["ts"]).timestamp() * 1000)
        producer.produce(f"{PREFIX}events", json.dumps(ping), ping["device_id"], timestamp=stamp)
    producer.produce(f"{PREFIX}events", b"{", "courier-0", timestamp=round(START.timestamp() * 1000))
    producer.flush()


def merged() -> set[str]:
    """Return the couriers with a snapshot of all events and the answer."""
    found = [json.loads(record["value"]) for record in records("snapshots")]
    return {one["device_id"] for one in found if one["version"] > PINGS and one["state"]["pings"] == PINGS}


def records(topic: str) -> list[dict[str, Any]]:
    """Return all records of a topic."""
    consumer = Consumer({"bootstrap.servers": KAFKA, "group.id": "record", "log_level": 0})
    found: list[dict[str, Any]] = []
    for number in range(PARTITIONS):
        place = TopicPartition(f"{PREFIX}{topic}", number, 0)
        _, end = consumer.get_watermark_offsets(place, 10)
        consumer.assign([place])
        while end and (not found or (found[-1]["partition"], found[-1]["offset"]) != (number, end - 1)):
            message = consumer.poll(10)
            assert message is not None
            assert message.error() is None
            key, value = (None if one is None else one.decode() for one in (message.key(), message.value()))
            own: dict[str, Any] = {"partition": number, "offset": message.offset(), "timestamp": message.timestamp()[1]}
            found.append(own | {"key": key, "value": value})
    consumer.close()
    return found


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            if condition():
                return
        except KafkaException:
            pass
        time.sleep(0.5)
    raise TimeoutError(what)


def archive(checkpoint: Path, folder: Path) -> None:
    """Store the checkpoint without the files of the lease."""
    for file in checkpoint.glob("*lease*"):
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    with tarfile.open(folder / "checkpoint.tar.gz", "w:gz") as target:
        target.add(checkpoint, "checkpoint")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
