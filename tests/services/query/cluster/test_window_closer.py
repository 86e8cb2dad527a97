"""Windows close by the recorded progress of the job, once this instance has read up to it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from contracts.model.named_state import CoverageField
from contracts.wire.partition import partition
from services.query.cluster import WindowCloser
from services.query.cluster.instance import Instance, InstanceDependencies
from services.query.cluster.membership import InstanceIdentity
from services.query.ingest.ingestion import ReadProgress
from services.query.store import StatePartition
from services.query.store.buckets import complete_watermark, time_buckets
from services.runtime.broker_clock import BrokerClock
from services.runtime.job_progress import Published
from tests.services.query.cluster.world import TIMING
from tests.services.query.http.instance import Instance as HttpInstance
from tests.services.query.http.instance import answering
from tests.services.query.in_memory import NOW, until
from tests.services.query.push.serving import Instance as WatchedInstance
from tests.services.query.push.serving import watching
from tests.services.query.windowed import DEPARTURES, HOUR, NOON, Departures, answered_at, at, departures

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping
    from pathlib import Path

    from services.query.store import Store

STATE = replace(
    DEPARTURES, coverage=(CoverageField("state.seen", timedelta(minutes=1)),), expires_by_clock=True, partitions=2
)
PATH = "/v1/states/departures/JFK"
GRACE_H = 5 / 60


class StoredIngestion:
    """An ingestion that has read what the test has written to the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def assign(self, partition: StatePartition) -> None:
        """See `Ingestion`."""

    def unassign(self, partition: StatePartition) -> None:
        """See `Ingestion`."""

    def progress(self, partition: StatePartition) -> ReadProgress | None:
        position = self._store.position(partition.number)
        return None if position is None else ReadProgress(position, position)

    async def end_offsets(self, partitions: Collection[StatePartition]) -> dict[StatePartition, int]:
        raise NotImplementedError

    async def growing(self, states: Collection[str]) -> Collection[str]:
        raise NotImplementedError

    async def run(self) -> None:
        raise NotImplementedError


class Behind:
    """An instance that has read what a test wrote, and the progress of a job that is behind the clock."""

    def __init__(self, written: Departures, instance: HttpInstance) -> None:
        self.written = written
        self.instance = instance
        ingestion = StoredIngestion(written.store)
        found = InstanceDependencies({STATE.name: STATE}, ingestion, {STATE.name: written.store}, lambda: NOW)
        one = Instance(InstanceIdentity("one", "http://one", "one", 1), TIMING, found, 1, BrokerClock(lambda: 0.0))
        one.assigned = one.in_use([StatePartition(STATE.name, number) for number in range(STATE.partitions)])
        one.step(0.0)
        self.closer = WindowCloser([STATE], {STATE.name: written.store}, lambda _: {}, one.has_read)

    def take(self, hour: float, *offsets: int) -> None:
        """Take the progress of a job that is at this hour after noon, and close what it closes."""
        time = datetime.fromtimestamp((NOON + hour * HOUR) / 1000, UTC)
        self.closer.take(STATE, {number: Published(one, time, 1) for number, one in enumerate(offsets)})
        self.closer.close(STATE)

    def positions(self) -> list[int]:
        return [self.written.store.position(number) or 0 for number in range(STATE.partitions)]

    async def is_open(self) -> bool:
        """Return whether the window of noon is open, in all answers that say so."""
        one = (await self.instance.ask(f"{PATH}?at={at(0)}")).json["is_open"]
        page = (await self.instance.ask(f"/v1/states/departures/windows/{at(0)}")).json["is_open"]
        assert one == page
        return bool(one)

    async def coverage(self) -> tuple[str, list[dict[str, str]]]:
        """Return until when the coverage of the first two windows is final, and its intervals."""
        found = (await self.instance.ask(f"{PATH}/coverage?from={at(0)}&to={at(2)}")).json
        return found["final_until"], found["intervals"]


@asynccontextmanager
async def behind(folder: Path) -> AsyncIterator[Behind]:
    """Serve an instance whose clock is hours ahead of all windows."""
    with departures(folder, state=STATE) as (dependencies, written):
        for key in ("JFK", "LGA", "SFO", "BOS", "EWR"):  # in both partitions
            written.put(key, 0, seen=[[0, 10]])
        written.store.advance_watermark(NOON + 10 * HOUR)
        async with answering(dependencies, hot=True) as instance:
            yield Behind(written, instance)


async def test_windows_close_by_the_progress_of_the_job_and_not_by_the_clock(tmp_path: Path) -> None:
    async with behind(tmp_path) as job:
        nothing, _ = await job.coverage()
        assert (await job.is_open(), nothing) == (True, "1970-01-01T00:00:00.000Z"), "a job that records no progress"
        job.take(1 + GRACE_H - 0.001, *job.positions())
        assert (await job.is_open(), (await job.coverage())[0]) == (True, answered_at(0)), "its grace is not over"
        job.take(1 + GRACE_H, *job.positions())
        assert (await job.is_open(), (await job.coverage())[0]) == (False, answered_at(1))
        job.take(0, *job.positions())
        assert not await job.is_open(), "an older progress opens no window"


async def test_an_unread_snapshot_changes_no_answer_that_was_final(tmp_path: Path) -> None:
    async with behind(tmp_path) as job:
        ends = job.positions()
        ends[partition(b"JFK", STATE.partitions)] += 1
        job.take(3, *ends)
        assert (await job.is_open(), (await job.coverage())[0]) == (True, "1970-01-01T00:00:00.000Z")
        job.written.put("JFK", 0, version=2, seen=[[0, 60]])
        job.closer.close(STATE)
        final_until, found = await job.coverage()
        assert (await job.is_open(), final_until) == (False, answered_at(2))
        assert found[0] == {"kind": "data", "from": answered_at(0), "to": answered_at(1)}


async def test_progress_of_only_some_partitions_closes_nothing(tmp_path: Path) -> None:
    async with behind(tmp_path) as job:
        job.take(3, job.positions()[0])
        assert await job.is_open()


async def test_closed_windows_stay_closed_after_a_restart(tmp_path: Path) -> None:
    async with behind(tmp_path) as job:
        job.take(1 + GRACE_H, *job.positions())
        job.written.store.drop_expired()  # no record arrives
    async with behind(tmp_path) as job:
        assert not await job.is_open()


async def test_a_watcher_receives_a_window_as_closed_when_the_job_has_passed_it(tmp_path: Path) -> None:
    with departures(tmp_path, state=STATE) as (dependencies, written):
        written.put("JFK", 0)
        async with (
            WatchedInstance(STATE, dependencies=dependencies).serving() as instance,
            watching(instance, f"{PATH}/watch?window=all") as events,
        ):
            assert (await events.next()).data["is_open"] is True
            written.store.advance_watermark(NOON + 5 * HOUR)
            instance.watching.refresh()
            instance.watching.changed(written.put("JFK", 1))  # nothing was sent before it
            assert (await events.next()).id == f"{NOON + HOUR}.0.1"
            written.store.close_windows(NOON + HOUR)
            closed = await events.next()
            assert (closed.id, closed.data["is_open"]) == (f"{NOON}.0.1.closed", False)


def test_windows_that_a_job_emits_closed_close_by_its_watermark() -> None:
    assert complete_watermark(STATE, 10 * HOUR) == 10 * HOUR - 5 * 60_000
    buckets = time_buckets(STATE)
    assert buckets.closed_before(complete_watermark(replace(STATE, emits_closed=True), 10 * HOUR)) == 10 * HOUR


async def test_progress_is_read_until_cancelled(tmp_path: Path) -> None:
    with departures(tmp_path, state=STATE) as (_, written):
        written.put("JFK", 0)
        time = datetime.fromtimestamp((NOON + 2 * HOUR) / 1000, UTC)
        progress: Mapping[int, Published] = {0: Published(0, time, 1), 1: Published(1, time + timedelta(seconds=1), 1)}
        closer = WindowCloser([STATE], {STATE.name: written.store}, lambda _: progress, lambda _: True)
        running = asyncio.create_task(closer.run())
        await until(lambda: not written.store.is_open(NOON))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert written.store.closed_before() == NOON + 2 * HOUR - HOUR - 5 * 60_000 + 1
