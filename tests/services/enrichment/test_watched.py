"""Worker processes as a monitor sees them, against a real broker and a real API."""

from __future__ import annotations

import asyncio
import json
import signal
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from contracts.records.record import Record
from services.runtime.kafka.group_consumer import KafkaGroupConsumer
from services.runtime.kafka.interfaces import TopicSubscription
from services.runtime.topic_check import PATIENCE_S, TopicCheck
from services.runtime.worker.subscription import member_options
from services.tools.broker.readiness import wait_until
from tests.clock import Clock
from tests.deadline import DEADLINE_S
from tests.services.enrichment.cluster import PARTITIONS, Cluster
from tests.services.enrichment.fleet import snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.services.enrichment.registry import Registry
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kafka


@pytest.fixture
def cluster(broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> Cluster:
    return Cluster(broker.bootstrap, topics_prefix, tmp_path)


async def condition(true: Callable[[], Any], what: str) -> None:
    await asyncio.to_thread(wait_until, true, what, DEADLINE_S)


def urls(cluster: Cluster) -> list[str]:
    lines = [json.loads(line) for line in cluster.log().splitlines() if '"message":"endpoints"' in line]
    return [line["url"] for line in lines]


async def test_a_worker_reports_its_metrics_and_its_health(cluster: Cluster, registry: Registry) -> None:
    cluster.publish(snapshot(1, "P1", "d1"), snapshot(1, "missing", "d2"))
    with cluster.worker(registry.url, http_port="0", stats_every="0.1") as process:
        await asyncio.to_thread(cluster.feedback, lambda found: len(found) == 4)
        await condition(lambda: cluster.committed() == 2, "all committed")
        (url,) = urls(cluster)
        async with aiohttp.ClientSession(url) as session:
            async with session.get("/readyz") as ready, session.get("/healthz") as healthy:
                assert (ready.status, healthy.status) == (200, 200)
            async with session.get("/metrics") as metrics:
                families = list(text_string_to_metric_families(await metrics.text()))
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, DEADLINE_S) == 0
    samples = [sample for family in families for sample in family.samples if sample.name.startswith("stateloop_")]
    assert {sample.labels.pop("application") for sample in samples} == {f"{cluster.prefix}fleet"}
    values = {(sample.name, *sample.labels.values()): sample.value for sample in samples}
    assert values["stateloop_worker_snapshots_total",] == 2
    assert values["stateloop_worker_partitions",] == PARTITIONS
    assert values["stateloop_worker_calls_total", "registry", "owner", "result"] == 1
    assert values["stateloop_worker_calls_total", "registry", "owner", "absence"] == 1
    assert values["stateloop_worker_answers_total", "quote", "result"] == 2
    assert values["stateloop_worker_commits_total",] >= 1


async def test_a_used_port_stops_the_worker_with_a_remedy(cluster: Cluster, registry: Registry) -> None:
    port = registry.url.rpartition(":")[2]
    with cluster.worker(registry.url, http_port=port) as process:
        assert await asyncio.to_thread(process.wait, DEADLINE_S) == 1
    assert "set STATELOOP_HTTP_PORT to a free port" in cluster.log()


async def test_a_worker_whose_topic_is_deleted_has_a_problem_and_reads_it_when_it_is_back(cluster: Cluster) -> None:
    clock, member, topic = Clock(), Member(), cluster.topics.snapshots
    options = {"bootstrap.servers": cluster.bootstrap, "topic.metadata.refresh.interval.ms": "500"}
    client = member_options(options)
    check = TopicCheck((topic,), cluster.bootstrap, lambda: None, clock)
    consumer = KafkaGroupConsumer(client, "test", TopicSubscription("g", topic, 1, timedelta(0), check, {}))
    consumer.subscribe(member, asyncio.get_running_loop())
    cluster.publish(snapshot(1, "P1", "d1"))

    async def fetch_until(condition: Callable[[], Any]) -> list[Record]:
        found = list[Record]()
        async with asyncio.timeout(DEADLINE_S):
            while not (condition() or found):
                clock.now += PATIENCE_S
                found = await consumer.fetch(paused=False, full=(), positions={})
        return found

    assert await fetch_until(lambda: False)
    await asyncio.to_thread(cluster.delete, topic)
    assert not await fetch_until(consumer.problem)
    assert f"no longer has {topic}" in (consumer.problem() or "")
    await asyncio.to_thread(cluster.create, topic)
    assert not await fetch_until(lambda: not consumer.problem())
    cluster.publish(snapshot(2, "P1", "d1"))
    assert await fetch_until(lambda: False)
    await consumer.close()


class Member:
    """Records the partitions of a consumer. Implements RebalanceListener."""

    def __init__(self) -> None:
        self.ours: list[int] | None = None

    def on_assigned(self, partitions: list[int]) -> None:
        self.ours = [*(self.ours or []), *partitions]

    async def on_revoked(self, partitions: list[int]) -> dict[int, int]:
        self.ours = [one for one in self.ours or [] if one not in partitions]
        return {}

    def on_lost(self, partitions: list[int]) -> None:
        self.ours = [one for one in self.ours or [] if one not in partitions]

    def on_committed(self, _: dict[int, int]) -> None:
        return

    def on_error(self) -> None:
        return


async def test_a_member_without_partitions_is_notified_of_its_membership(cluster: Cluster) -> None:
    client = member_options({"bootstrap.servers": cluster.bootstrap})
    members = [Member() for _ in range(PARTITIONS + 1)]

    def settled() -> bool:
        taken = sorted(one for member in members for one in member.ours or [])
        return all(member.ours is not None for member in members) and taken == list(range(PARTITIONS))

    async def poll(consumer: KafkaGroupConsumer) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not settled():
                await consumer.fetch(paused=False, full=(), positions={})

    topic = cluster.topics.snapshots
    check = TopicCheck((topic,), cluster.bootstrap, lambda: None)
    subscription = TopicSubscription("g", topic, 1, timedelta(0), check, {})
    consumers = [KafkaGroupConsumer(client, "test", subscription) for _ in members]
    for consumer, member in zip(consumers, members, strict=True):
        consumer.subscribe(member, asyncio.get_running_loop())
    await asyncio.gather(*map(poll, consumers))
    assert sorted(len(member.ours or []) for member in members) == [0, 1, 1, 1, 1]
    await asyncio.gather(*(consumer.close() for consumer in consumers))
