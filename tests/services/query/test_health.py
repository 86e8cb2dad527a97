"""The health of an instance: when it needs a restart, and when it is not ready."""

from __future__ import annotations

import shutil
import tempfile
from datetime import timedelta

from contracts.metrics import query as metrics
from services.query.cluster.routing import Member, PartitionStatus, Role
from services.query.health import Health
from services.query.ingest.kafka_ingestion import IngestCounts
from tests.services.query.in_memory import MemoryRouting, a_state, dependencies_of


class HealthScene:
    """An instance whose roles and ingest rounds a test sets."""

    def __init__(self) -> None:
        self.time = 0.0
        self.routing = MemoryRouting()
        dependencies = dependencies_of(a_state(), routing=self.routing, stuck_after=timedelta(seconds=60))
        self.dependencies = type(dependencies)(**(vars(dependencies) | {"clock": lambda: self.time}))
        self.counts = IngestCounts(["flights"])
        self.joined = True
        self.health = Health(self.dependencies, self.counts, lambda: self.joined)


def test_an_ingest_thread_that_makes_progress_is_healthy() -> None:
    scene = HealthScene()
    for _ in range(10):
        scene.time += 50
        scene.counts.rounds += 1
        scene.health.check()
        assert scene.health.unhealthy() is None


def test_an_ingest_thread_that_hangs_is_unhealthy() -> None:
    scene = HealthScene()
    scene.health.check()
    scene.time = 59
    scene.health.check()
    assert scene.health.unhealthy() is None
    scene.time = 61
    assert scene.health.unhealthy() == "the topics were not polled for 61 s"
    scene.counts.rounds += 1
    scene.health.check()
    assert scene.health.unhealthy() is None


def test_an_instance_is_ready_when_each_partition_has_an_owner() -> None:
    scene = HealthScene()
    assert scene.health.unready() is None
    scene.routing.others[1] = PartitionStatus(Role.CATCHING_UP, 9)
    assert scene.health.unready() == "1 partitions are still catching up"
    scene.routing.others[1] = PartitionStatus(Role.ELSEWHERE, 0)
    assert scene.health.unready() == "no known instance answers for 1 partitions"
    scene.routing.known = [Member("two", "http://two")]
    assert scene.health.unready() is None
    scene.joined = False
    assert scene.health.unready() == "it has not joined the cluster yet"
    scene.health.stopping = True
    assert scene.health.unready() == "it is stopping"


def test_the_gauges_have_roles_lag_and_counts() -> None:
    scene = HealthScene()
    scene.routing.others[3] = PartitionStatus(Role.CATCHING_UP, 9)
    scene.counts.records["flights"], scene.counts.undecodable["flights"] = 7, 2
    text = scene.health.text().decode()
    counts = scene.dependencies.counts
    assert 0 < counts.get(metrics.FREE_BYTES, "flights") <= shutil.disk_usage(tempfile.gettempdir()).total
    assert counts.get(metrics.PARTITIONS, "flights", "owner") == 3
    assert counts.get(metrics.PARTITIONS, "flights", "catching_up") == 1
    assert (counts.get(metrics.LAG), counts.get(metrics.RECORDS), counts.get(metrics.GARBAGE)) == (9, 7, 2)
    assert 'stateloop_query_lag{state="flights"} 9.0' in text
