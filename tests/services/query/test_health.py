"""When an instance asks for a restart, and when for no requests."""

from __future__ import annotations

from datetime import timedelta

from contracts.metrics import query as metrics
from services.query.cluster.routing import Member, Role, Standing
from services.query.health import Health
from services.query.ingest.kafka_ingestion import Tally
from tests.services.query.in_memory import MemoryRoles, a_state, parts_of


class Placed:
    """An instance in whatever place."""

    def __init__(self) -> None:
        self.time = 0.0
        self.roles = MemoryRoles()
        parts = parts_of(a_state(), roles=self.roles, stuck_after=timedelta(seconds=60))
        self.parts = type(parts)(**(vars(parts) | {"clock": lambda: self.time}))
        self.tally = Tally(["flights"])
        self.joined = True
        self.health = Health(self.parts, self.tally, lambda: self.joined)


def test_a_follower_that_goes_round_is_well_with_and_without_records() -> None:
    placed = Placed()
    for _ in range(10):
        placed.time += 50
        placed.tally.rounds += 1
        placed.health.look()
        assert placed.health.unhealthy() is None


def test_one_that_hangs_wants_a_restart() -> None:
    placed = Placed()
    placed.health.look()
    placed.time = 59
    placed.health.look()
    assert placed.health.unhealthy() is None
    placed.time = 61
    assert placed.health.unhealthy() == "nothing was looked for in the topics for 61 s"
    placed.tally.rounds += 1
    placed.health.look()
    assert placed.health.unhealthy() is None


def test_it_is_ready_when_each_partition_has_an_owner() -> None:
    placed = Placed()
    assert placed.health.unready() is None
    placed.roles.others[1] = Standing(Role.CATCHING_UP, 9)
    assert placed.health.unready() == "1 partitions are still catching up"
    placed.roles.others[1] = Standing(Role.ELSEWHERE, 0)
    assert placed.health.unready() == "nobody is known who answers for 1 partitions"
    placed.roles.known = [Member("two", "http://two")]
    assert placed.health.unready() is None
    placed.joined = False
    assert placed.health.unready() == "it is not one of the cluster yet"
    placed.health.stopping = True
    assert placed.health.unready() == "it is stopping"


def test_the_gauges_say_how_it_stands() -> None:
    placed = Placed()
    placed.roles.others[3] = Standing(Role.CATCHING_UP, 9)
    placed.tally.records["flights"], placed.tally.garbage["flights"] = 7, 2
    placed.health.measure()
    counts = placed.parts.counts
    assert counts.get(metrics.PARTITIONS, "flights", "owner") == 3
    assert counts.get(metrics.PARTITIONS, "flights", "catching_up") == 1
    assert (counts.get(metrics.LAG), counts.get(metrics.RECORDS), counts.get(metrics.GARBAGE)) == (9, 7, 2)
