"""docs/architecture.md and beside.toml list the files that run for one event and for one alert, and no others.

What runs from time to time may run beside an alert, or not: `at_times` lists it separately.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from services.derive import service as derive
from services.derive.settings import DeriveSettings
from services.enrichment import service as enrichment
from services.enrichment.settings import EnrichmentSettings
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.clients import KafkaClients
from services.runtime.kafka.values import Partition
from services.tools.broker.errors import NotReadyError
from services.tools.broker.readiness import wait_until
from spark_app.query.pipeline import pipeline
from spark_app.settings import JobSettings
from tests.deadline import DEADLINE_S
from tests.docs.test_architecture import all_files, occasional_files
from tests.docs.traced import Trace
from tests.services.derive.alerted import Limit, sensors
from tests.services.derive.test_alert_service import PARTITIONS, SENSORS, Sensors
from tests.services.enrichment.cluster import Cluster
from tests.services.enrichment.fleet import application, snapshot
from tests.services.enrichment.registry import Registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Coroutine
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.services.tools.broker.embedded import EmbeddedBroker


class Outside:
    """Calls functions in a thread that is older than the trace, which does not see it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._thread.submit(int).result()

    async def call(self, function: Callable[[], object]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, function)

    async def until(self, is_true: Callable[[], bool], what: str) -> None:
        await self.call(lambda: wait_until(is_true, what, DEADLINE_S))

    async def run(self, trace: Trace, listed: Collection[str]) -> None:
        """Wait until these files have run, which a worker may do a moment after its commit. Returns at the deadline."""
        with suppress(NotReadyError):
            await self.until(lambda: trace.files >= {*listed}, "all listed files have run")


@asynccontextmanager
async def running(service: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run a service until the end of the block."""
    task = asyncio.create_task(service)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.mark.spark
@pytest.mark.kafka
async def test_the_page_lists_the_files_that_run_for_an_event(
    spark: SparkSession, broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    cluster, trace, outside = Cluster(broker.bootstrap, topics_prefix, tmp_path), Trace(), Outside()
    fleet, listed = application(topics_prefix), all_files("One event")
    job = JobSettings.model_validate({"application": "fleet", "kafka": broker.bootstrap, "checkpoint": str(tmp_path)})
    with trace.installed(), trace.recording():
        pipeline(spark, fleet, job, epoch=1, partitions=2, heartbeats=b"heartbeat")
    async with Registry().serving() as registry:
        settings = EnrichmentSettings.model_validate(
            {
                "application": "fleet",
                "kafka": broker.bootstrap,
                "apis": {"registry": registry.url},
                "allowed_networks": ["127.0.0.0/8"],
                "commit_every": 0.1,
            }
        )
        service = enrichment.serve(settings, {cluster.group: fleet}, {}, KafkaClients(settings.client()))
        with trace.installed():
            async with running(service):
                await outside.call(lambda: cluster.publish(snapshot(1, "P1", "d1")))
                await outside.until(lambda: cluster.committed() == 1, "the first snapshot is committed")
                with trace.recording():
                    await outside.call(lambda: cluster.publish(snapshot(1, "P2", "d2")))
                    await outside.until(lambda: cluster.committed() == 2, "the second snapshot is committed")
                    await outside.run(trace, listed)
        assert registry.calls["/owners/P2"] == 1
    assert sorted(trace.files) == sorted(listed)


@pytest.mark.kafka
async def test_the_page_lists_the_files_that_run_for_an_alert(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    topics, trace, outside = Sensors(broker.bootstrap, topics_prefix, tmp_path), Trace(), Outside()
    listed = all_files("One alert")
    admin, group = KafkaAdmin({"bootstrap.servers": broker.bootstrap}, "test"), f"{topics_prefix}derive"
    snapshots = [Partition(f"{topics_prefix}snapshots", number) for number in range(PARTITIONS)]

    def committed() -> int:
        return sum(max(0, position.offset) for position in admin.committed(group, snapshots).values())

    settings = DeriveSettings.model_validate({"application": "sensors", "kafka": broker.bootstrap})
    topics.put("rule", Limit(high=10, low=5))
    with trace.installed():
        async with running(derive.serve(settings, {group: sensors(topics_prefix)}, KafkaClients(settings.client()))):
            await outside.call(lambda: topics.publish(1, 1))
            await outside.until(lambda: committed() == len(SENSORS), "the first snapshots are committed")
            with trace.recording():
                await outside.call(lambda: topics.publish(2, 20))
                await outside.until(lambda: committed() == 2 * len(SENSORS), "the others are committed")
                await outside.run(trace, listed)
    topics.await_transitions(len(SENSORS), 0)
    assert sorted(trace.files - {*occasional_files("One alert")}) == sorted(listed)
