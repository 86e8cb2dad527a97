"""A state gets a new field by the steps of docs/how-to/upgrade.md, under the consumer of docs/how-to/topics.md."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.e2e.fleet import Fleet, application, following
from tests.e2e.loop import ask
from tests.e2e.times import newer, older
from tests.services.enrichment.registry import Registry
from tests.services.tools.broker.embedded import free_port_pair
from tests.spark_app.running import until as until_within

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.e2e.fleet import Place, Release
    from tests.services.tools.broker.embedded import EmbeddedBroker
    from tests.spark_app.hosted import HostedJob

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark]

DEVICES = [f"m{number}" for number in range(10)]
UNKNOWN, REFUSED = "missing-1", "forbidden-1"
"""Plates to which the API answers 404 and 403."""
until = partial(until_within, patience_s=300.0)


@pytest.fixture
def fleet(spark: SparkSession, broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> Fleet:
    """Give topics without a record."""
    return Fleet(spark, broker, topics_prefix, tmp_path)


@pytest.fixture
async def registry() -> AsyncIterator[Registry]:
    """Give an API that holds its answers back until its gate opens."""
    async with Registry().serving() as running:
        running.gate.clear()
        yield running


async def test_a_documented_consumer_never_goes_back(fleet: Fleet, registry: Registry) -> None:
    open_gate = partial(asyncio.get_running_loop().call_soon_threadsafe, registry.gate.set)
    await asyncio.to_thread(restart_and_rebuild, fleet, registry, open_gate)


def restart_and_rebuild(fleet: Fleet, registry: Registry, open_gate: Callable[[], object]) -> None:
    """Two windows of each device with late answers for the older one, a restart, compaction, and a rebuild."""
    with following(fleet, "first") as first:
        with fleet.job("before") as job, fleet.worker(registry.url):
            send_windows(fleet, registry, job)
            open_gate()
            until(lambda: fleet.is_complete("before", job), "late answers for the older windows")
            until(lambda: publishes_again_after_a_restart(fleet, job), "a restart in the midst of a batch")
            before = fleet.compacted_windows()
            job.stop()
            until(fleet.has_no_lag, "no lag")
        with fleet.job("after") as job, fleet.worker(registry.url, application=application("after")):
            until(lambda: job.lines("catching_up") and fleet.is_complete("after", job), "the rebuilt windows")
            for device in DEVICES[::2]:
                fleet.event(device, newer())
            until(lambda: fleet.is_complete("after", job), "events after the rebuild")
        after = fleet.compacted_windows()
        assert all(after[window].enrichments == snapshot.enrichments for window, snapshot in before.items())
        newest = {device: (newer(), *after[device, newer()].order) for device in DEVICES}
        until(lambda: last(first()) == newest, "the newest snapshots")
        assert all(now > then for places in first().values() for then, now in pairwise(places))
    with following(fleet, "second") as second:
        until(lambda: last(second()) == newest, "the newest snapshots of a consumer that begins after the compaction")


def send_windows(fleet: Fleet, registry: Registry, job: HostedJob) -> None:
    """Send events of two windows of each device; the newer is published before the calls for the older are answered."""
    for number, device in enumerate(DEVICES):
        fleet.event(device, older(), f"P{number}")
    until(lambda: len(registry.calls) == len(DEVICES), "calls for the older windows")
    for device in DEVICES:
        fleet.event(device, newer())
    second = [(device, newer()) for device in DEVICES]
    until(lambda: fleet.is_complete("before", job, second), "snapshots of the newer windows")


def last(places: dict[str, list[Place]]) -> dict[str, Place]:
    """The last place of each device."""
    return {device: own[-1] for device, own in places.items()}


def publishes_again_after_a_restart(fleet: Fleet, job: HostedJob) -> bool:
    """Stop the job as soon as it has published, and start it again; whether it had not committed what it published."""
    for restarts in (True, False):
        for device in DEVICES:
            fleet.event(device, newer())
        until(lambda: fleet.is_complete("before", job), "snapshots of the events")
        if restarts:
            job.stop()
            job.start()
    return max(Counter((snapshot.window, snapshot.order) for snapshot in fleet.snapshots()).values()) > 1


async def test_an_upgrade_shows_the_new_field_and_repeats_no_call(fleet: Fleet, registry: Registry) -> None:
    open_gate = partial(asyncio.get_running_loop().call_soon_threadsafe, registry.gate.set)
    await asyncio.to_thread(upgrade, fleet, registry, open_gate)


def upgrade(fleet: Fleet, registry: Registry, open_gate: Callable[[], object]) -> None:
    """The documented steps, with a worker and a query service that are restarted at the same time as the job."""
    *quiet, late, later = DEVICES
    with fleet.job("before") as job, services(fleet, registry, "before") as port:
        for device, plate in zip(quiet, (UNKNOWN, REFUSED, "P0", "P1", "P2", "P3", "P4", "P5"), strict=True):
            fleet.event(device, newer(), plate)
            fleet.event(device, newer())
            fleet.send("events", device, b"{")
        until(lambda: len(registry.calls) == len(quiet), "calls")
        open_gate()
        until(lambda: fleet.is_complete("before", job), "states with all answers")
        until(lambda: len(fleet.refusals()) == len(quiet), "dead letters")
        until(lambda: is_served(fleet, port, "before"), "the states in the query service")
        old, refused = fleet.newest(), fleet.refusals()
        assert {epoch for *_, epoch in refused} == {job.epoch()}
        registry.gate.clear()
        for device in (late, later):
            fleet.event(device, newer(), f"P-{device}")
        until(lambda: {f"/owners/P-{late}", f"/owners/P-{later}"} <= registry.calls.keys(), "late calls")
        job.stop()
        open_gate()
        until(fleet.has_no_lag, "answers that the job has not read")
    with fleet.job("after") as job, services(fleet, registry, "after") as port:
        until(lambda: job.lines("catching_up") and fleet.is_complete("after", job), "the rebuilt states")
        until(lambda: is_served(fleet, port, "after"), "the new field in the query service")
        until(fleet.has_no_lag, "no lag")
        new = fleet.newest()
        assert [new[window].enrichments for window in old] == [snapshot.enrichments for snapshot in old.values()]
        assert max(Counter(registry.raw).values()) == 1, "no call is repeated"
        assert len(registry.raw) == 2 * len(DEVICES) - len((UNKNOWN, REFUSED))
        assert fleet.refusals() == refused | {(*origin, job.epoch()) for *origin, _ in refused}


@contextmanager
def services(fleet: Fleet, registry: Registry, release: Release) -> Iterator[str]:
    """Run a worker and a query service; gives the port of the latter."""
    port, data = str(free_port_pair()), str(fleet.folder / "data")
    query = fleet.service("services.query", http_port=port, query_data=data, application=application(release))
    with fleet.worker(registry.url, application=application(release)), query:
        yield port


def is_served(fleet: Fleet, port: str, release: Release) -> bool:
    """Return whether the query service shows the state of every device."""
    served = {window: ask(port, f"machines/{window[0]}") for window in fleet.events}
    return all(answer and answer["value"]["state"] == fleet.state(window, release) for window, answer in served.items())
