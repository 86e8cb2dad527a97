"""Topics get more partitions while devices send, workers call, and readers read."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections import Counter
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient

from contracts.wire import Snapshot, decode_snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import parse_window_key
from tests.deadline import DEADLINE_S
from tests.e2e.fleet import Fleet, application
from tests.e2e.test_rebuild import generations, rebuild, rebuild_process
from tests.services.tools.broker.embedded import free_port_pair
from tests.spark_app.running import until as until_within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.services.enrichment.registry import Registry
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark]

BEFORE, AFTER = 2, 3
DEVICES = [f"m{number}" for number in range(8)]
PAUSE_S = 0.1
until = partial(until_within, patience_s=300.0)


@pytest.fixture
def fleet(spark: SparkSession, broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> Fleet:
    """Give topics without a record."""
    return Fleet(spark, broker, topics_prefix, tmp_path, BEFORE)


async def test_partitions_are_added_and_nothing_is_lost_or_repeated(fleet: Fleet, registry: Registry) -> None:
    await asyncio.to_thread(grow, fleet, registry)


def grow(fleet: Fleet, registry: Registry) -> None:
    """From 2 to 3 partitions of the topics, with a new field, killed in the middle."""
    now = datetime.now(UTC)
    older, newer = now - timedelta(minutes=20), now - timedelta(minutes=1)
    group = ("--enrichment-group", fleet.group("services.enrichment"))
    with queried(fleet) as reader, ExitStack() as processes:
        with fleet.job("before", "shared", state_partitions="2") as job:
            with fleet.worker(registry.url):
                for number, device in enumerate(DEVICES):
                    fleet.event(device, older, f"P{number}")
                    fleet.event(device, newer)
                until((job.checkpoint / "stateloop.json").exists, "a checkpoint")
                until(lambda: fleet.is_complete("before", job), "states of the former application")
                until(lambda: reader.latest.keys() >= set(DEVICES), "the states in the query service")
                calls = registry.raw.copy()
                growing = processes.enter_context(
                    rebuild_process(fleet, "after", "--partitions", str(AFTER), *group, state_partitions="2")
                )
                until(
                    lambda: "waits until the workers" in growing.output or growing.poll() is not None,
                    "all is built, and a worker runs",
                )
                assert set(partitions(fleet).values()) == {BEFORE}
                last_ms = max(record.timestamp()[1] for record in fleet.records("snapshots"))
            until(lambda: set(partitions(fleet).values()) == {AFTER}, "all topics have new partitions")
            growing.kill()
            assert not generations(fleet, "../stateloop.active.*"), "the switch is not made"
            assert until(lambda: job.ended() and job.wait(), "the end of the former job") == 1
        fleet.event(DEVICES[0], newer)  # by a producer that knows the former partitions only
        continued = rebuild(fleet, "after", "--watch", *group, state_partitions="2")
        after = fleet.worker(registry.url, application=application("after"))
        until(lambda: generations(fleet, "../stateloop.active.1"), "the switch")
        with fleet.job("after", "shared", state_partitions="2") as job, after:
            assert continued.wait() == 0, continued.output
            until(lambda: fleet.is_complete("after", job), "rebuilt states, of quiet windows too")
            fleet.connect()
            fleet.events[DEVICES[0], newer] -= 1
            fleet.event(DEVICES[0], newer)  # the same event, now in a new partition
            for device in DEVICES:
                fleet.event(device, newer)
            until(lambda: fleet.is_complete("after", job), "each event is counted once")
            fleet.partitions = AFTER
            until(fleet.has_no_lag, "no lag")
            newest = {window: snapshot.order for window, snapshot in fleet.newest().items()}
            expected = {device: newest[device, newer] for device in DEVICES}
            until(lambda: reader.orders() == expected, "the query service follows")
    assert reader.faults == []
    assert registry.raw == calls, "no call is repeated"
    assert max(Counter(registry.raw).values()) == 1
    (waited,) = re.findall(
        r"in epoch (\d+) is there, ([\d.]+) s after the last one of the former job", continued.output
    )
    first_ms = min(ms for epoch, ms in epochs(fleet) if epoch >= int(waited[0]))
    assert float(waited[1]) >= (first_ms - last_ms) / 1000 - 0.1, "a copy is no snapshot of the former job"
    for record in fleet.records("snapshots"):
        device, _ = parse_window_key(record.key() or b"")
        assert record.partition() == partition(device.encode(), AFTER)


def partitions(fleet: Fleet) -> dict[str, int]:
    """The number of partitions of each topic of the fleet."""
    listed = AdminClient({"bootstrap.servers": fleet.bootstrap}).list_topics(timeout=DEADLINE_S).topics
    return {name: len(topic.partitions) for name, topic in listed.items() if name.startswith(fleet.prefix)}


def epochs(fleet: Fleet) -> list[tuple[int, int]]:
    """The epoch of each snapshot, and when it was written."""
    records = fleet.records("snapshots")
    return [(decode_snapshot(record.value() or b"").epoch, record.timestamp()[1]) for record in records]


class QueryReader:
    """Reads all devices from the query service again and again, and notes whenever one has gone back."""

    def __init__(self, port: str) -> None:
        self.latest: dict[str, Snapshot] = {}
        self.faults: list[str] = []
        self._port = int(port)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def orders(self) -> dict[str, tuple[int, int]]:
        """Epoch and version of each device's state."""
        return {device: snapshot.order for device, snapshot in self.latest.items()}

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(PAUSE_S):
            for answer in self._answers():
                self._take(answer["key"], answer)

    def _take(self, device: str, answer: dict[str, Any]) -> None:
        last = self.latest.get(device)
        if answer.get("status") == HTTPStatus.NOT_FOUND and last is not None:
            self.faults.append(f"{device} was there, and now: {answer}")
        elif "value" in answer:
            self.latest[device] = now = Snapshot.model_validate(answer["value"])
            if last is not None and not _follows(last, now):
                self.faults.append(f"{last} and then {now}")

    def _answers(self) -> list[dict[str, Any]]:
        """An answer or a problem for each device; none while the service is away."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            connection.request("POST", "/v1/states/machines:batchGet", json.dumps({"keys": DEVICES}))
            response = connection.getresponse()
            read = json.loads(response.read())
        except (OSError, ValueError, HTTPException):
            return []
        else:
            answers: list[dict[str, Any]] = read["answers"] if response.status == HTTPStatus.OK else []
            return answers
        finally:
            connection.close()


def _follows(last: Snapshot, now: Snapshot) -> bool:
    return (now.first_seen, *now.order) >= (last.first_seen, *last.order) and (
        now.first_seen > last.first_seen or now.enrichments.keys() >= last.enrichments.keys()
    )


@contextmanager
def queried(fleet: Fleet) -> Iterator[QueryReader]:
    """Run a reader, and a query service that is started again whenever it ends, as its deployment does."""
    port, stopping = str(free_port_pair()), threading.Event()
    settings = {"http_port": port, "query_data": str(fleet.folder / "data")}
    running = [fleet.start("services.query", **settings)]

    def supervise() -> None:
        while not stopping.is_set():
            running[0].wait()
            if not stopping.is_set():
                running[0] = fleet.start("services.query", **settings)

    supervisor, reader = threading.Thread(target=supervise), QueryReader(port)
    supervisor.start()
    reader.start()
    try:
        yield reader
    finally:
        reader.stop()
        stopping.set()
        running[0].terminate()
        supervisor.join()
