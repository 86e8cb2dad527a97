"""A savepoint of a live job, restored on an empty machine, and `stateloop verify` before and after."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from contracts.wire.partition import partition
from contracts.wire.window_key import window_key
from tests.e2e.commands import running
from tests.e2e.fleet import Fleet, application, following
from tests.e2e.loop import PARTITIONS, ask
from tests.services.client.fake_service import Fake, entry
from tests.services.enrichment.registry import Registry
from tests.services.tools.broker.embedded import free_port_pair
from tests.spark_app.hosted import done
from tests.spark_app.running import until as until_within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pyspark.sql import SparkSession

    from contracts.wire import Snapshot
    from tests.e2e.commands import CommandProcess
    from tests.services.tools.broker.embedded import EmbeddedBroker
    from tests.spark_app.hosted import HostedJob

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark]

DEVICES = [f"m{number}" for number in range(8)]
CALLS = 4 * len(DEVICES)
"""For two plates of each device."""
DIFFERENT = 3
BATCH = "PT5S"
"""A verification waits for the end of a batch."""
until = partial(until_within, patience_s=300.0)


class Machine:
    """A folder that stands for a machine: the job's checkpoint and the query service's store are in it."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        self.fleet, self.name = fleet, name
        self.port = str(free_port_pair())

    @property
    def folder(self) -> Path:
        """All that the machine has."""
        return self.fleet.folder / self.name

    @contextmanager
    def running(self, registry: Registry) -> Iterator[HostedJob]:
        """Run the job, a worker and the query service."""
        data, release = str(self.folder / "data"), application("after")
        query = self.fleet.service("services.query", http_port=self.port, query_data=data, application=release)
        worker = self.fleet.worker(registry.url, application=release)
        with self.fleet.job("after", self.name, batch=BATCH) as job, worker, query:
            yield job

    def shows_all(self) -> bool:
        """Return whether the query service has the state of each window's newest snapshot."""
        served_states = {window: ask(self.port, f"machines/{window[0]}") for window in self.fleet.events}
        return all(
            answer and answer["value"]["state"] == self.fleet.state(window, "after")
            for window, answer in served_states.items()
        )

    def done(self, *arguments: str, code: int = 0, url: str | None = None) -> str:
        """Run a command of the operator to its end; return what it printed."""
        return done(self.fleet.spark, self._environment(url), *arguments, code=code)

    def running_command(self, *arguments: str) -> AbstractContextManager[CommandProcess]:
        """Run a command as a process."""
        return running(self._environment(), self.fleet.log("commands"), *arguments)

    def _environment(self, url: str | None = None) -> dict[str, str]:
        return self.fleet.environment | {
            "STATELOOP_APPLICATION": application("after"),
            "STATELOOP_CHECKPOINT": str(self.folder / "checkpoint"),
            "STATELOOP_URL": url or f"http://127.0.0.1:{self.port}",
            "COLUMNS": "200",
        }


async def test_a_savepoint_is_restored_on_an_empty_machine(
    spark: SparkSession, broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    async with Registry().serving() as registry, Fake().serving() as fake:
        await asyncio.to_thread(restore, Fleet(spark, broker, topics_prefix, tmp_path), registry, fake)


def restore(fleet: Fleet, registry: Registry, fake: Fake) -> None:
    """Lose the first machine after a savepoint, go on with a second one, and fail to begin a third too late."""
    first, second, third = (Machine(fleet, name) for name in ("first", "second", "third"))
    window = datetime.now(UTC) - timedelta(minutes=5)
    with following(fleet, "reader") as places:
        with first.running(registry) as job:
            for number, device in enumerate(DEVICES):
                fleet.event(device, window, f"P{number}")
            until((first.folder / "checkpoint" / "commits").exists, "a commit")
            until(lambda: fleet.is_complete("after", job), "states with answers")
            path = first.done("savepoint", "create", str(fleet.folder / "savepoints")).split()[0]
            for number, device in enumerate(DEVICES):
                fleet.event(device, window, f"Q{number}")
            until(lambda: fleet.is_complete("after", job), "states after the savepoint")
            until(lambda: len(registry.raw) == CALLS, "the calls for both plates of each device")
            until(fleet.has_no_lag, "no lag")
            old = job.epoch()
        calls = registry.raw.copy()
        shutil.rmtree(first.folder)
        fleet.event(DEVICES[0], window)
        second.done("savepoint", "restore", path)
        with second.running(registry) as job:
            until(lambda: fleet.is_complete("after", job), "the restored states")
            until(fleet.has_no_lag, "no lag")
            check_moving(fleet, second, window)
            until(lambda: fleet.is_complete("after", job), "the final states")
        assert job.epoch() > old
        assert registry.raw == calls, "no call is repeated"
        assert max(Counter(calls).values()) == 1
        newest = {window: snapshot.order for window, snapshot in fleet.newest().items()}
        until(
            lambda: all(places()[device][-1] == (window, *newest[device, window]) for device in DEVICES), "the reader"
        )
        assert all(now > then for own in places().values() for then, now in pairwise(own))
    check_planted(fleet, second, fake)
    lose_events(fleet)
    assert "records between are gone" in third.done("savepoint", "restore", path, code=1)
    assert not (third.folder / "checkpoint").exists()


def check_moving(fleet: Fleet, machine: Machine, window: datetime) -> None:
    """Verify while devices send."""
    until(machine.shows_all, "the states in the query service")
    with machine.running_command("verify") as verification:  # one Spark does not run a query and a copy of it

        def has_ended() -> bool:
            fleet.event(DEVICES[1], window)
            return verification.poll() is not None

        until(has_ended, "the end of the verification")
        assert verification.poll() == 0, verification.output
        assert f"{len(DEVICES)} keys" in verification.output


def check_planted(fleet: Fleet, machine: Machine, fake: Fake) -> None:
    """Verify after one key was changed on the topic, and two in the query service."""
    wrong, older, missing, *_ = DEVICES
    newest = {snapshot.device_id: snapshot for snapshot in fleet.newest().values()}
    planted = newest[wrong].model_copy(update={"version": newest[wrong].version + 1, "state": {"events": 99}})
    home = partition(wrong.encode(), PARTITIONS)
    fleet.send("snapshots", window_key(*planted.window), planted.encode(), home)
    fleet.event(wrong, planted.first_seen)
    with fleet.job("after", machine.name, batch=BATCH) as job:
        until(lambda: fleet.newest()[planted.window].state == fleet.state(planted.window, "after"), "its own version")
        await_commit(job)
    served_states = newest | {wrong: planted, older: newest[older].model_copy(update={"version": 1})}
    fake.put(*(served(snapshot) for key, snapshot in served_states.items() if key != missing))
    output = machine.done("verify", "--patience", "0", url=fake.url, code=DIFFERENT)
    rows = [re.split(r"\s{2,}", line.strip()) for line in output.splitlines() if line.startswith("m")]
    problems = {(columns[0], columns[-1]) for columns in rows if len(columns) > 1}
    changed = [problem for key, problem in problems if key == wrong]
    assert changed, output
    assert all(problem.endswith("of the same version") and "state.events" in problem for problem in changed), output
    assert {pair for pair in problems if pair[0] != wrong} == {
        (older, "the query service is older"),
        (missing, "the query service lacks it"),
    }


def await_commit(job: HostedJob) -> None:
    """Wait until what the job has published is in a commit: it publishes nothing of a batch before the one below."""
    commits = job.checkpoint / "commits"
    before = {*commits.iterdir()}
    until(lambda: {*commits.iterdir()} - before, "a commit")


def served(snapshot: Snapshot) -> dict[str, object]:
    """The answer of a query service that has this snapshot."""
    start = snapshot.first_seen.isoformat()
    answer = entry(snapshot.device_id, snapshot.version, start, "machines", snapshot.epoch)
    return answer | {"value": snapshot.model_dump(mode="json", exclude_none=True)}


def lose_events(fleet: Fleet) -> None:
    """Delete the records of the events, as a retention that is too short does."""
    topic = f"{fleet.prefix}events"
    consumer = Consumer({"bootstrap.servers": fleet.bootstrap, "group.id": "ends"})
    end_offsets = {
        number: consumer.get_watermark_offsets(TopicPartition(topic, number), 30)[1] for number in range(PARTITIONS)
    }
    consumer.close()
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, *end) for end in end_offsets.items()]).values():
        future.result(30)
