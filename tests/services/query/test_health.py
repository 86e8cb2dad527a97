"""When an instance asks for a restart, and when for no requests."""

from __future__ import annotations

from datetime import timedelta

from contracts.metrics import query as metrics
from services.query.cluster.routing import Member, PartitionStatus, Role
from services.query.health import Health
from services.query.ingest.kafka_ingestion import IngestCounts
from tests.services.query.in_memory import MemoryRouting, a_state, dependencies_of


class Placed:
    """An instance in whatever place."""

    def __init__(self) -> None:
        self.time = 0.0
        self.routing = MemoryRouting()
        dependencies = dependencies_of(a_state(), routing=self.routing, stuck_after=timedelta(seconds=60))
        self.dependencies = type(dependencies)(**(vars(dependencies) | {"clock": lambda: self.time}))
        self.counts = IngestCounts(["flights"])
        self.joined = True
        self.health = Health(self.dependencies, self.counts, lambda: self.joined)


def test_a_follower_that_goes_round_is_well_with_and_without_records() -> None:
    placed = Placed()
    for _ in range(10):
        placed.time += 50
        placed.counts.rounds += 1
        placed.health.check()
        assert placed.health.unhealthy() is None


def test_one_that_hangs_wants_a_restart() -> None:
    placed = Placed()
    placed.health.check()
    placed.time = 59
    placed.health.check()
    assert placed.health.unhealthy() is None
    placed.time = 61
    assert placed.health.unhealthy() == "the topics were not polled for 61 s"
    placed.counts.rounds += 1
    placed.health.check()
    assert placed.health.unhealthy() is None


def test_it_is_ready_when_each_partition_has_an_owner() -> None:
    placed = Placed()
    assert placed.health.unready() is None
    placed.routing.others[1] = PartitionStatus(Role.CATCHING_UP, 9)
    assert placed.health.unready() == "1 partitions are still catching up"
    placed.routing.others[1] = PartitionStatus(Role.ELSEWHERE, 0)
    assert placed.health.unready() == "no known instance answers for 1 partitions"
    placed.routing.known = [Member("two", "http://two")]
    assert placed.health.unready() is None
    placed.joined = False
    assert placed.health.unready() == "it has not joined the cluster yet"
    placed.health.stopping = True
    assert placed.health.unready() == "it is stopping"


def test_the_gauges_say_how_it_stands() -> None:
    placed = Placed()
    placed.routing.others[3] = PartitionStatus(Role.CATCHING_UP, 9)
    placed.counts.records["flights"], placed.counts.undecodable["flights"] = 7, 2
    placed.health.measure()
    counts = placed.dependencies.counts
    assert counts.get(metrics.PARTITIONS, "flights", "owner") == 3
    assert counts.get(metrics.PARTITIONS, "flights", "catching_up") == 1
    assert (counts.get(metrics.LAG), counts.get(metrics.RECORDS), counts.get(metrics.GARBAGE)) == (9, 7, 2)
