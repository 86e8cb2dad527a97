"""`stateloop rebuild` during a running job: it crashes at several points, is killed at one, and is rolled back."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from tests.e2e.commands import running
from tests.e2e.fleet import Fleet, application, following
from tests.e2e.times import newer, older
from tests.spark_app.hosted import CRASHED, Crash, HostedCommand
from tests.spark_app.running import until as until_within

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.e2e.commands import CommandProcess
    from tests.e2e.fleet import Release
    from tests.services.enrichment.registry import Registry
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark]

AFTER = application("after")
DEVICES = [f"m{number}" for number in range(10)]
PLANNED = "services.tools.cli.rebuild.build"
"""It runs when the plan is reported."""
IDENTIFIED = "spark_app.lifecycle.rebuild.build"
"""It runs when the generation has an identity and a lease."""
COMMITTED = "spark_app.lifecycle.rebuild.Rebuild._unread"
"""It runs when the batches of a pass are committed."""
REQUESTED = "spark_app.lifecycle.rebuild.activate"
"""It runs when the generation is complete and has to be published again, and is not yet active."""
until = partial(until_within, patience_s=300.0)


@pytest.fixture
def fleet(spark: SparkSession, broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> Fleet:
    """Give topics without a record."""
    return Fleet(spark, broker, topics_prefix, tmp_path)


def test_a_rebuild_that_crashes_continues(fleet: Fleet) -> None:
    """A field is added while devices send. The former job runs until the new generation is active."""
    with fleet.job("before", "shared") as job:
        for device in DEVICES:
            fleet.event(device, older())
        until((job.checkpoint / "stateloop.json").exists, "a checkpoint")
        until(lambda: fleet.is_complete("before", job), "states of the former application")
        for point in (PLANNED, IDENTIFIED):
            crash_at(fleet, "after", point)
            fleet.event(DEVICES[0], newer())
        kill_at(fleet, "after", read)
        crash_at(fleet, "after", COMMITTED)
        fleet.event(DEVICES[0], newer())
        assert not job.ended(), "the job runs until the new generation is active"
        crash_at(fleet, "after", REQUESTED)
        last = rebuild(fleet, "after")
        assert last.wait() == 0, last.output
        assert "This continues generation-" in last.output
        assert until(lambda: job.ended() and job.wait(), "the end of the former job") == 1
        assert "stateloop rebuild" in job.lines("ended")[-1]["why"]
    with fleet.job("after", "shared") as job:
        until(lambda: fleet.is_complete("after", job), "rebuilt states, of quiet windows too")


async def test_a_rebuild_repeats_no_call_and_can_be_rolled_back(fleet: Fleet, registry: Registry) -> None:
    await asyncio.to_thread(rebuild_and_roll_back, fleet, registry)


def rebuild_and_roll_back(fleet: Fleet, registry: Registry) -> None:
    """A reader never goes back, from one application to the next and back again.

    Fields are renamed, removed and changed, the number of state partitions grows, and no call is repeated.
    """
    with following(fleet, "reader") as places:
        with fleet.job("after", "shared", state_partitions="2") as job, fleet.worker(registry.url, application=AFTER):
            for number, device in enumerate(DEVICES):
                fleet.event(device, older(), f"P{number}")
                fleet.event(device, newer())
            until((job.checkpoint / "stateloop.json").exists, "a checkpoint")
            until(lambda: fleet.is_complete("after", job), "states of the former application")
            calls = registry.raw.copy()
            renaming = rebuild(fleet, "renamed", state_partitions="3")
            assert renaming.wait() == 0, renaming.output
            until(job.ended, "the end of the former job")
            fleet.event(DEVICES[1], newer())
        renamed = fleet.worker(registry.url, application=application("renamed"))
        with fleet.job("renamed", "shared", state_partitions="3") as job, renamed:
            until(lambda: fleet.is_complete("renamed", job), "rebuilt states, of quiet windows too")
            fleet.event(DEVICES[2], newer())
            until(lambda: fleet.is_complete("renamed", job), "an event after the rebuild")
            until(fleet.has_no_lag, "no lag")
        rollback = rebuild(fleet, "after", "--rollback", state_partitions="2")
        assert rollback.wait() == 0, rollback.output
        fleet.event(DEVICES[3], newer())
        with fleet.job("after", "shared", state_partitions="2") as job, fleet.worker(registry.url, application=AFTER):
            until(lambda: fleet.is_complete("after", job), "the states of the former application again")
            until(fleet.has_no_lag, "no lag")
        assert registry.raw == calls, "no call is repeated"
        assert max(Counter(registry.raw).values()) == 1
        newest = {window: snapshot.order for window, snapshot in fleet.newest().items()}
        until(
            lambda: all(places()[device][-1] == (newer(), *newest[device, newer()]) for device in DEVICES), "the reader"
        )
        assert all(now > then for own in places().values() for then, now in pairwise(own))


def settings_of(fleet: Fleet, release: Release, **settings: str) -> dict[str, str]:
    """The environment of a command with an application."""
    environment = fleet.environment | {
        "STATELOOP_APPLICATION": application(release),
        "STATELOOP_CHECKPOINT": str(fleet.folder / "shared" / "checkpoint"),
    }
    return environment | {f"STATELOOP_{name.upper()}": value for name, value in settings.items()}


def rebuild(fleet: Fleet, release: Release, *arguments: str, **settings: str) -> HostedCommand:
    """Start `stateloop rebuild` with an application."""
    return HostedCommand(fleet.spark, settings_of(fleet, release, **settings), "rebuild", *arguments)


def rebuild_process(
    fleet: Fleet, release: Release, *arguments: str, **settings: str
) -> AbstractContextManager[CommandProcess]:
    """Run it as a process."""
    return running(settings_of(fleet, release, **settings), fleet.log("rebuild"), "rebuild", *arguments)


def kill_at(fleet: Fleet, release: Release, point: Callable[[Fleet], bool]) -> None:
    """Run a rebuild until it has reached this point, and kill it with its JVM."""
    with rebuild_process(fleet, release) as process:
        until(lambda: process.poll() is not None or point(fleet), point.__name__, pause_s=0.005)
        assert process.poll() is None, process.output


def crash_at(fleet: Fleet, release: Release, function: str) -> None:
    """Run a rebuild in the shared Spark, and end it where it calls this function."""
    with patch(function, side_effect=Crash):
        running = rebuild(fleet, release)
        assert running.wait() == CRASHED, running.output


def read(fleet: Fleet) -> bool:
    """A batch is planned."""
    return any(generations(fleet, "offsets/0"))


def generations(fleet: Fleet, name: str) -> list[Path]:
    """The files of this name in the folders of generations."""
    return list((fleet.folder / "shared" / "checkpoint").glob(f"generation-*/{name}"))
