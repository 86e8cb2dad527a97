"""The loop moves to another cluster after its own is lost, with copies of the topics that have other offsets."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from contracts.settings import KafkaSettings
from services.runtime.kafka.options import create_producer
from spark_app.topics.times import STAMP, TopicTimes
from tests.e2e.fleet import Fleet, application, following
from tests.services.enrichment.registry import Registry
from tests.services.tools.broker.embedded import EmbeddedBroker, free_port_pair
from tests.spark_app.hosted import done
from tests.spark_app.running import everything
from tests.spark_app.running import until as until_within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from confluent_kafka import Message
    from pyspark.sql import SparkSession

    from tests.spark_app.hosted import HostedJob

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark, pytest.mark.full]

DEVICES = [f"m{number}" for number in range(8)]
EARLY = 6
"""The number of events of each device before the savepoint."""
SKIPPED = 3
"""The number of first records of each partition of events that the other cluster has not: its offsets are smaller."""
AGAIN = 4
"""The number of last records of each partition of events that are copied twice, as after a failure of the copier."""
BATCH = "PT5S"
until = partial(until_within, patience_s=300.0)


@pytest.fixture
def other_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """Give the broker of another cluster."""
    folder = tmp_path / "broker"
    folder.mkdir()
    other = EmbeddedBroker(folder, free_port_pair())
    other.start()
    yield other
    other.stop()


async def test_a_savepoint_continues_on_another_cluster(
    spark: SparkSession, broker: EmbeddedBroker, other_broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("lost", "other")]
    for folder in folders:
        folder.mkdir()
    lost, other = (
        Fleet(spark, *place)
        for place in ((broker, topics_prefix, folders[0]), (other_broker, topics_prefix, folders[1]))
    )
    async with Registry().serving() as registry:
        path = await asyncio.to_thread(before, lost, registry)
        await asyncio.to_thread(move, lost, other)
        await asyncio.to_thread(after, other, registry, path)


def before(fleet: Fleet, registry: Registry) -> str:
    """Run the loop on the cluster that is about to be lost; return the path of a savepoint before the last events."""
    window = datetime.now(UTC) - timedelta(minutes=5)
    with fleet.worker(registry.url, application=application("after")), fleet.job("after", batch=BATCH) as job:
        for number, device in enumerate(DEVICES):
            for _ in range(EARLY):
                fleet.event(device, window, f"P{number}")
        until((job.checkpoint / "commits").exists, "a commit")
        until(lambda: fleet.is_complete("after", job), "states with answers")
        await_commit(job)
        made = command(fleet, "savepoint", "create", str(fleet.folder / "savepoints"))
        for number, device in enumerate(DEVICES):
            fleet.event(device, window, f"Q{number}")
        fleet.event("late", window, "R")
        until(lambda: fleet.is_complete("after", job), "states after the savepoint")
    return made.split()[0]


def move(lost: Fleet, other: Fleet) -> None:
    """Copy the topics, with the times of their records."""
    other.events, other.plates = lost.events, lost.plates
    for topic in ("events", "feedback", "snapshots"):
        name = f"{lost.prefix}{topic}"
        times = TopicTimes(KafkaSettings(kafka=other.bootstrap), name)
        times.change({STAMP: "CreateTime"})
        producer = create_producer({"bootstrap.servers": other.bootstrap}, "copier")
        for number, messages in by_partition(everything(lost.bootstrap, name)).items():
            copied = [*messages[SKIPPED:], *messages[-AGAIN:]] if topic == "events" else messages
            for message in copied:
                _, stamp = message.timestamp()
                producer.produce(name, message.value(), message.key(), number, timestamp=stamp)
        assert producer.flush(30) == 0
        times.change({STAMP: "LogAppendTime"})


def by_partition(messages: list[Message]) -> dict[int, list[Message]]:
    """Return messages by their partition."""
    partitions = defaultdict[int, list["Message"]](list)
    for message in messages:
        partitions[message.partition() or 0].append(message)
    return partitions


def after(fleet: Fleet, registry: Registry, path: str) -> None:
    """Restore the savepoint on the other cluster, and go on there. A reader has followed the copied snapshots."""
    with following(fleet, "reader") as places:
        until(lambda: set(DEVICES) <= places().keys(), "the copied snapshots")
        former = {device: own[-1] for device, own in places().items()}
        assert "which now is" in command(fleet, "savepoint", "restore", path, code=1)
        behind = fleet.folder / "behind.json"
        behind.write_text(json.dumps(ends(fleet)), encoding="utf-8")
        refused = command(fleet, "savepoint", "restore", path, "--other-topics", str(behind), code=1)
        assert "are not read" in refused
        restored = command(fleet, "savepoint", "restore", path, "--other-topics", "time")
        assert "begins at offset 0" in restored
        with fleet.job("after", batch=BATCH) as job, fleet.worker(registry.url, application=application("after")):
            until(lambda: fleet.is_complete("after", job), "the states of all events")
            window = next(iter(fleet.events))[1]
            for number, device in enumerate(DEVICES):
                fleet.event(device, window, f"S{number}")
            until(lambda: fleet.is_complete("after", job), "the final states")
        newest = {window: snapshot.order for window, snapshot in fleet.newest().items()}
        until(lambda: all(places()[d][-1] == (at, *order) for (d, at), order in newest.items()), "the reader")
        assert all(places()[device][-1] > place for device, place in former.items())
        assert all(later > earlier for own in places().values() for earlier, later in pairwise(own))


def await_commit(job: HostedJob) -> None:
    """Wait until a batch is committed that has all records so far: the one that runs, and the next one."""
    job.batches(2)


def command(fleet: Fleet, *arguments: str, code: int = 0) -> str:
    """Run a command of the operator with the job's settings."""
    settings = {
        "STATELOOP_APPLICATION": application("after"),
        "STATELOOP_CHECKPOINT": str(fleet.folder / "after" / "checkpoint"),
    }
    return done(fleet.spark, fleet.environment | settings, *arguments, code=code)


def ends(fleet: Fleet) -> dict[str, dict[int, int]]:
    """The end offset of each partition of the topics that the job reads."""
    names = [f"{fleet.prefix}{topic}" for topic in ("events", "feedback")]
    found = {name: by_partition(everything(fleet.bootstrap, name)) for name in names}
    return {
        name: {number: (partitions[number][-1].offset() or 0) + 1 if number in partitions else 0 for number in range(2)}
        for name, partitions in found.items()
    }
