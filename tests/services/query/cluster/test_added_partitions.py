"""The decisions of instances while partitions are added, and after that."""

from __future__ import annotations

import random

import pytest

from services.query.errors import PartitionsChangedError
from services.query.store import StatePartition
from tests.services.query.cluster import world as cluster_world
from tests.services.query.cluster.world import EPOCH, TIMING, World, calm, claim, owned


def test_a_replica_that_begins_while_partitions_are_added_does_not_answer() -> None:
    """The records of some keys may have been moved before it read them."""
    world, partition = owned("ab", running=1)
    world.is_growing = True
    world.start(world.disks[1])
    world.assign(partition, ["a", "b"])
    calm(world, 5)
    assert world.answering(partition) == ["a"]
    world.kill(world.disks[0])
    calm(world, TIMING.silence_s + 5)
    assert world.answering(partition) == []
    world.is_growing = False
    calm(world, 2)
    assert world.answering(partition) == ["b"]


def test_an_instance_ends_when_another_one_uses_more_partitions() -> None:
    world, _ = owned("a")
    instance = world.processes["a"].instance
    instance.receive(claim("b", 1, partitions=1), world.now)
    (state,) = claim("b", 2, partitions=2).states.values()
    other = state.model_copy(update={"topic": "other"})
    instance.receive(claim("b", 2).model_copy(update={"states": {"flights": other}}), world.now)
    with pytest.raises(PartitionsChangedError, match="'topic' has 2 partitions, and had 1"):
        instance.receive(claim("b", 3, partitions=2), world.now)


def test_an_instance_announces_its_number_of_partitions() -> None:
    world = World(random.Random(1), names="a", parts=3)
    world.start(world.disks[0])
    announced = world.processes["a"].instance.announce(world.now, EPOCH).states["flights"]
    assert (announced.topic, announced.partitions) == ("topic", 3)


def test_no_lease_is_taken_beside_an_instance_that_uses_fewer_partitions() -> None:
    """It answers for keys that are in other partitions here."""
    world = World(random.Random(1), names="a")
    world.log.append(claim("b", 1, partitions=1))
    world.start(world.disks[0])
    for partition in world.end_offsets:
        world.assign(partition, ["a"])
    for number in range(2, 50):
        world.log.append(claim("b", number, partitions=1))
        world.pass_time(0.1, lively=1.0)
        assert not any(world.answering(partition) for partition in world.end_offsets)
    calm(world, TIMING.silence_s + 2)
    assert [world.answering(partition) for partition in world.end_offsets] == [["a"], ["a"]]


def test_a_partition_that_the_group_does_not_assign_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that starts again within its session gets the partitions that it had, and not those that were added."""
    monkeypatch.setattr(cluster_world, "TIMING", TIMING._replace(unassigned_s=4.0))
    world = World(random.Random(1), names="abc", replicas=1)
    first, second = world.end_offsets
    for disk in world.disks:
        world.start(disk)
    world.assign(first, ["a"])
    calm(world, 3)
    assert [world.answering(first), world.answering(second)] == [["a"], []]
    calm(world, 5)
    assert world.answering(first) == ["a"]
    (taker,) = world.answering(second)
    followers = [name for name, one in world.processes.items() if second in one.reading.followed]
    assert followers == [taker], "one replica is enough"
    other = next(name for name in "abc" if name != taker)
    world.assign(second, [other])
    calm(world, 5)
    assert world.answering(second) == [other]
    assert second not in world.processes[taker].reading.followed


def test_partitions_that_are_being_added_have_no_keys_yet() -> None:
    world = World(random.Random(1))
    world.start(world.disks[0])
    added = StatePartition("flights", len(world.end_offsets))
    assert world.processes["a"].instance.in_use({*world.end_offsets, added}) == world.end_offsets.keys()
