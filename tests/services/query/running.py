"""Processes of the service with a real broker, and the snapshots that they read."""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager
from functools import cached_property
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple

from contracts.wire.partition import partition
from contracts.wire.window_key import window_key
from services.runtime.kafka.options import create_producer
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.forked import Forked
from tests.services.query.fleet import application
from tests.services.tools.broker.embedded import free_port_pair

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from confluent_kafka import Producer

    from contracts.wire import Snapshot

PARTITIONS = 4


class Response(NamedTuple):
    """A response; its status is 0 if the request failed."""

    status: int
    headers: dict[str, str]
    body: Any


class Fleet:
    """The topics of the application on a broker, and a service that reads them."""

    def __init__(self, bootstrap: str, prefix: str, folder: Path) -> None:
        self.topics = application(prefix).topics
        self.port = free_port_pair()
        self.log = folder / "query.log"
        self.environment = {
            "STATELOOP_APPLICATION": "tests.services.query.fleet:app",
            "STATELOOP_KAFKA": bootstrap,
            "STATELOOP_QUERY_DATA": str(folder / "data"),
            "STATELOOP_HTTP_PORT": str(self.port),
            "STATELOOP_INSTANCE": "one",
            "STATELOOP_GROUP": f"{prefix}query",
            "FLEET_PREFIX": prefix,
        }
        self._bootstrap = bootstrap
        topics = Forked.module("services.tools.topics", os.environ | self.environment, folder / "topics.log")
        assert topics.wait(DEADLINE_S) == 0

    def publish(self, *snapshots: Snapshot) -> None:
        """Write snapshots as the job does."""
        for snapshot in snapshots:
            key, home = (
                window_key(snapshot.device_id, snapshot.first_seen),
                partition(snapshot.device_id.encode(), PARTITIONS),
            )
            self._producer.produce(self.topics.snapshots, key=key, value=snapshot.encode(), partition=home)
        assert self._producer.flush(DEADLINE_S) == 0

    @cached_property
    def _producer(self) -> Producer:
        return create_producer({"bootstrap.servers": self._bootstrap}, "test")

    def start(self, **settings: str) -> Forked:
        """Start a process of the service."""
        return Forked.module("services.query", os.environ | self.environment | settings, self.log)

    @contextmanager
    def running(self, **settings: str) -> Iterator[Forked]:
        """Run a process that is ready, and stop it at the end with exit code 0."""
        process = self.start(**settings)
        try:
            self.ready(process)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_S) == 0, self.log.read_text(encoding="utf-8")[-3000:]

    def ready(self, process: Forked) -> None:
        """Wait until the process answers for all of its partitions."""
        wait_until(lambda: process.poll() is not None or self.ask("/readyz").status == 200, "ready", DEADLINE_S)
        assert process.poll() is None, self.log.read_text(encoding="utf-8")[-3000:]

    def ask(self, path: str, body: str | None = None, **headers: str) -> Response:
        """Return the response to a GET, or to a POST of this body."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=40)
        try:
            connection.request("GET" if body is None else "POST", path, body, headers)
            response = connection.getresponse()
            read = response.read()
        except (OSError, HTTPException):
            return Response(0, {}, None)
        else:
            kind = response.headers.get("Content-Type", "")
            return Response(
                response.status, dict(response.headers), json.loads(read) if "json" in kind and read else read
            )
        finally:
            connection.close()

    def until(self, path: str, status: int) -> Response:
        """Repeat the request until it has this status, and return the response."""
        found: list[Response] = []

        def answered() -> bool:
            found.append(self.ask(path))
            return found[-1].status == status

        wait_until(answered, f"{status} of {path}, see {self.log}", DEADLINE_S)
        return found[-1]
