"""Instances of the query service, of two versions, that `upgrade_query.py` replaces."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

from contracts.wire.partition import partition
from contracts.wire.window_key import window_key
from services.runtime.kafka.options import create_producer
from tests.compatibility.queried import CARS, FIRST, PARKED, PARTITIONS, Load, WrittenSnapshot, suite
from tests.compatibility.query_watchers import Place
from tests.compatibility.upgrade_loop import (
    HERE,
    IS_KILLED,
    PATIENCE_S,
    RUNS_BESIDE,
    STOPS,
    end,
    module_of,
    report,
    until,
    version_of,
)
from tests.services.tools.broker.embedded import free_port_pair

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

EMPTY = "the store starts empty"
RATE, TURN_S = 200, 0.02
"""Snapshots per second."""


class QueryFleet:
    """Three instances at their places, of the version before at first; `folder`: of logs and stores."""

    def __init__(self, before: Path, folder: Path, kafka: str, running: ExitStack) -> None:
        self.before, self.folder, self._kafka, self._running = before, folder, kafka, running
        self.places = [Place(name) for name in "abc"]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        """By the name of the instance."""
        self._ports: dict[str, int] = {}

    def prepare(self) -> None:
        """Make the topics, with cars that do not change."""
        command = [sys.executable, "-m", module_of("services.tools.topics", self.before)]
        log = self._running.enter_context((self.folder / "topics.log").open("ab"))
        environment = self._environment(self.before)
        subprocess.run(command, cwd=self.before, env=environment, check=True, stdout=log, stderr=log)
        producer = SnapshotProducer(self._kafka)
        for number in range(PARKED):
            producer.write(WrittenSnapshot(CARS, f"parked/{number}", FIRST, 1, 1))
        producer.flush()

    def start(self, instance: str, checkout: Path) -> None:
        """Start an instance of a version."""
        port = self._ports.setdefault(instance, free_port_pair())
        own = {
            "STATELOOP_INSTANCE": instance,
            "STATELOOP_QUERY_DATA": str(self.folder / instance),
            "STATELOOP_HTTP_PORT": str(port),
        }
        log = self._running.enter_context((self.folder / f"{instance}-{version_of(checkout)}.log").open("ab"))
        self._processes[instance] = subprocess.Popen(
            [sys.executable, "-m", "services.query"],
            cwd=checkout,
            env=self._environment(checkout) | own,
            stdout=log,
            stderr=log,
        )
        self._running.callback(end, self._processes[instance])

    def take_place(self, place: Place, instance: str, checkout: Path) -> None:
        """Wait until an instance owns partitions, and send the clients of the place to it."""
        until(lambda: self._is_serving(instance), f"{instance} serves")
        place.instance, place.name = instance, f"{instance}-{version_of(checkout)}"
        place.url = self._url(instance)

    def replace(self, place: Place, checkout: Path, way: str) -> None:
        """Replace the instance at a place by one of this version, and wait until that serves."""
        old, process = place.name, self._processes[place.instance]
        if way == IS_KILLED:
            process.send_signal(signal.SIGKILL)
        elif way == STOPS:
            process.send_signal(signal.SIGTERM)
        if way != RUNS_BESIDE:
            process.wait(PATIENCE_S)
        instance = f"{place.instance}-2" if way == RUNS_BESIDE else place.instance
        if way != RUNS_BESIDE:  # it answers at the address of the place before it serves
            place.name = f"{instance}-{version_of(checkout)}"
        self.start(instance, checkout)
        self.take_place(place, instance, checkout)
        if way == RUNS_BESIDE:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)
        report(f"{old} {way} (exit code {process.returncode}), {place.name} serves")

    def empty_starts(self) -> int:
        """Return how many stores were emptied at a start."""
        return sum(log.read_text(encoding="utf-8").count(EMPTY) for log in self.folder.glob("*-*.log"))

    def _is_serving(self, name: str) -> bool:
        if (code := self._processes[name].poll()) is not None:
            raise ChildProcessError(f"{name} has exit code {code}: see {self.folder}")
        try:
            with urlopen(f"{self._url(name)}/readyz", timeout=2):  # noqa: S310  # our own
                pass
            with urlopen(f"{self._url(name)}/v1/instances", timeout=2) as response:  # noqa: S310
                found = json.load(response)["instances"]
        except (URLError, OSError, ValueError):
            return False
        owns = {instance["instance"]: instance["owns"] for instance in found}
        owned = [
            sum(len(owned.get(application.name, ())) for owned in owns.values()) for application in suite.applications
        ]
        return any(owns.get(name, {}).values()) and owned == [PARTITIONS] * len(owned)

    def _url(self, name: str) -> str:
        return f"http://127.0.0.1:{self._ports[name]}"

    def _environment(self, checkout: Path) -> dict[str, str]:
        return os.environ | {
            "PYTHONPATH": f"{HERE}:{checkout}",
            "STATELOOP_APPLICATION": "queried:suite",
            "STATELOOP_KAFKA": self._kafka,
            "STATELOOP_GROUP": "queried-query",
            "STATELOOP_RATE": "0",
        }


class SnapshotProducer:
    """Writes snapshots as the job does."""

    def __init__(self, kafka: str) -> None:
        self._producer = create_producer({"bootstrap.servers": kafka, "linger.ms": 2}, "load")
        self._topics = {application.name: application.topics.snapshots for application in suite.applications}

    def write(self, written: WrittenSnapshot) -> None:
        """Write a snapshot."""
        key, home = window_key(written.key, written.started), partition(written.key.encode(), PARTITIONS)
        while True:
            try:
                self._producer.produce(self._topics[written.state], written.snapshot().encode(), key, home)
            except BufferError:
                self._producer.poll(0.1)
            else:
                self._producer.poll(0)
                return

    def flush(self) -> None:
        """Wait until all are acknowledged."""
        assert self._producer.flush(PATIENCE_S) == 0

    async def run(self, load: Load, is_over: asyncio.Event) -> None:
        """Write the snapshots of the load until it is over."""
        while not is_over.is_set():
            for _ in range(round(RATE * TURN_S)):
                self.write(load.next())
            await asyncio.sleep(TURN_S)
        await asyncio.to_thread(self.flush)
