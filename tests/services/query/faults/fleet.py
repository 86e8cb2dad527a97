"""Instances of the service as processes on a real broker, and their topics."""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

from confluent_kafka.admin import AdminClient, NewTopic

from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.forked import Forked
from tests.services.query.faults.cars import NAME, PARTITIONS, application
from tests.services.tools.broker.embedded import free_port_pair

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANSWER_S = 1.0


class Instance:
    """One instance: its name, folder and port stay the same over its processes."""

    def __init__(self, name: str, folder: Path, environment: dict[str, str]) -> None:
        self.name = name
        self.port = free_port_pair()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / f"{name}.log"
        self._environment = environment | {
            "STATELOOP_INSTANCE": name,
            "STATELOOP_QUERY_DATA": str(folder / name),
            "STATELOOP_HTTP_PORT": str(self.port),
        }
        self.process: Forked | None = None

    def start(self) -> None:
        """Start a process, and do not wait for it."""
        self.process = Forked.module("services.query", os.environ | self._environment, self.log)

    def kill(self) -> None:
        """Send SIGKILL."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(DEADLINE_S)
            self.process = None

    def stop(self) -> int:
        """Send SIGTERM; return the exit code."""
        assert self.process is not None
        self.process.terminate()
        code = self.process.wait(DEADLINE_S)
        self.process = None
        return code

    def freeze(self) -> None:
        """Send SIGSTOP."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Send SIGCONT."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def owns(self) -> set[int]:
        """Return the partitions that it reports as its own; none without a response."""
        try:
            with urlopen(f"{self.url}/v1/instances", timeout=ANSWER_S) as response:  # noqa: S310  # our own
                body = json.load(response)
        except (URLError, OSError, ValueError):
            return set()
        return next(set(one["owns"].get(NAME, ())) for one in body["instances"] if one["instance"] == self.name)


class Fleet:
    """The instances of one application."""

    def __init__(self, bootstrap: str, prefix: str, folder: Path, **settings: str) -> None:
        topics = application(prefix).topics
        self.bootstrap = bootstrap
        self.topic = topics.snapshots
        self.folder = folder
        self._instances: list[Instance] = []
        self._environment = {
            "CARS_PREFIX": prefix,
            "STATELOOP_APPLICATION": "tests.services.query.faults.cars:app",
            "STATELOOP_KAFKA": bootstrap,
            "STATELOOP_GROUP": f"{prefix}query",
            "STATELOOP_RATE": "0",
            **{f"STATELOOP_{name.upper()}": value for name, value in settings.items()},
        }
        admin = AdminClient({"bootstrap.servers": bootstrap})
        wanted = [NewTopic(topics.snapshots, PARTITIONS, 1), NewTopic(topics.instances, PARTITIONS, 1)]
        for made in admin.create_topics(wanted).values():
            made.result(DEADLINE_S)

    def instance(self, name: str) -> Instance:
        """Return an instance that is not started yet."""
        made = Instance(name, self.folder, self._environment)
        self._instances.append(made)
        return made

    @contextmanager
    def running(self) -> Iterator[None]:
        """Kill the remaining processes at the end."""
        try:
            yield
        finally:
            for instance in self._instances:
                instance.kill()

    def logs(self) -> str:
        """Return the end of the logs of all instances."""
        return "\n".join(
            f"== {instance.name}\n{instance.log.read_text()[-1500:]}"
            for instance in self._instances
            if instance.log.exists()
        )

    def settle(self, *instances: Instance) -> None:
        """Wait until these instances own all partitions, each some of them."""

        def shared() -> bool:
            owned = [instance.owns() for instance in instances]
            return all(owned) and sum(map(len, owned)) == PARTITIONS and set().union(*owned) == set(range(PARTITIONS))

        wait_until(shared, f"partitions shared by {[one.name for one in instances]}", DEADLINE_S)
