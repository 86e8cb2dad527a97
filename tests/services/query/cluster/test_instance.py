from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.records.state_record import AHEAD_MS
from services.query.cluster.leases import CatchUpTarget, LeaseTable
from services.query.cluster.membership import Membership
from services.query.http.instance_routes import instance_facts, owners_of
from services.query.lookup.authentication import ANONYMOUS
from tests.services.query.cluster.world import EPOCH, GRACE, HOUR, NOW, TIMING, World, calm, claim, owned

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.query.store import StatePartition

STEPS = 300


@pytest.mark.slow
@settings(max_examples=150)
@given(st.integers(), st.integers(1, 3))
def test_no_answer_is_older_than_an_earlier_one_under_random_faults(seed: int, replicas: int) -> None:
    assert chaos(seed, replicas).regressions == []


@pytest.mark.slow
@settings(max_examples=80)
@given(st.integers(), st.integers(1, 3))
def test_each_partition_has_its_owner_after_the_faults_end(seed: int, replicas: int) -> None:
    world = chaos(seed, replicas)
    owners = recover(world)
    calm(world, 20)
    assert {partition: world.answering(partition) for partition in world.end_offsets} == {
        partition: [one] for partition, one in owners.items()
    }
    assert world.regressions == []


@settings(max_examples=40)
@given(seed=st.integers(), replicas=st.integers(2, 3), gone=st.integers(1, 2), clean=st.booleans())
def test_a_replica_answers_before_the_group_notices_a_failure(
    seed: int, replicas: int, gone: int, *, clean: bool
) -> None:
    world = World(random.Random(seed), replicas=replicas)
    recover(world)
    calm(world, 10)
    for disk in world.rng.sample(world.disks, min(gone, replicas - 1)):
        (world.leave if clean else world.kill)(disk)
    calm(world, 1.0 if clean else TIMING.silence_s + 1.5)
    assert {partition: len(world.answering(partition)) for partition in world.end_offsets} == dict.fromkeys(
        world.end_offsets, 1
    )
    assert world.regressions == []


def test_a_restarted_partition_is_not_answered_for_until_it_has_caught_up() -> None:
    world = World(random.Random(1), names="a", parts=1, replicas=1)
    (partition,) = world.end_offsets
    world.start(world.disks[0])
    world.assign(partition, ["a"])
    calm(world, 5)
    assert world.answering(partition) == ["a"]
    process = world.processes["a"]
    process.instance.restarted(partition)
    process.disk.positions[partition] = 0
    assert world.answering(partition) == []
    world.most_read = 2
    for _ in range(200):
        world.pass_time(0.02, lively=0.9)
        assert not world.answering(partition) or process.disk.positions[partition] >= 5
    calm(world, 5)
    assert world.answering(partition) == ["a"]


def test_the_description_of_an_instance_lists_its_partitions() -> None:
    world = World(random.Random(1), names="ab", replicas=2)
    for disk in world.disks:
        world.start(disk)
    owners = dict(zip(world.end_offsets, "ab", strict=True))
    for partition, owner in owners.items():
        world.assign(partition, [owner])
    world.most_read = 50
    calm(world, 5)
    announcement = world.processes["a"].instance.snapshot(world.now, EPOCH)
    facts = instance_facts(announcement, owners_of([announcement]), ANONYMOUS)
    assert (facts["instance"], facts["url"], facts["owns"]) == ("a", "http://a", {"flights": [0]})
    roles = {one["partition"]: one["role"] for one in facts["states"]["flights"]["partitions"]}
    assert roles == {0: "owner", 1: "standby"}


def test_of_two_owners_after_a_suspension_the_later_one_stays() -> None:
    world, partition = owned("ab", replicas=2)
    assert world.answering(partition) == ["a"]
    world.suspend("a", 20)
    world.assign(partition, ["b"])
    calm(world, 10)
    assert world.answering(partition) == ["b"]
    world.assign(partition, ["a", "b"])
    calm(world, 10 + TIMING.lease_s / 2)
    assert world.answering(partition) == ["b"], "a releases although its lease is valid by its clock"


def test_routers_agree_on_the_owner_of_a_partition() -> None:
    world = World(random.Random(1), names="cd", parts=1)
    (partition,) = world.end_offsets
    for disk in world.disks:
        world.start(disk)
    world.log += [claim("a", 3, term=2), claim("b", 3, term=1)]
    calm(world, 1)
    for process in world.processes.values():
        assert [owner.announcement.instance for owner in process.instance.owners(partition)][:2] == ["a", "b"]
    both = [claim("b", 4, term=3), claim("a", 4, term=2)]
    world.log += both
    calm(world, 1)
    for process in world.processes.values():
        assert [owner.announcement.instance for owner in process.instance.owners(partition)][:2] == ["b", "a"]
    assert owners_of(both) == owners_of(reversed(both)) == {partition: "b"}
    assert [instance_facts(one, owners_of(both), ANONYMOUS)["owns"] for one in both] == [
        {"flights": [0]},
        {"flights": []},
    ]


def test_watermarks_of_instances_that_are_gone_are_not_used() -> None:
    world = World(random.Random(1), names="a", parts=1)
    world.log.append(claim("gone", 9, watermark=NOW))
    world.start(world.disks[0])
    calm(world, 5)
    mark = world.processes["a"].mark
    assert mark.watermark() == 0, "its records may no longer be on the topic"
    world.log.append(claim("b", 1, watermark=NOW + AHEAD_MS))
    calm(world, 1)
    assert mark.watermark() == NOW + AHEAD_MS
    world.log += [claim("b", 2, watermark=7), claim("broken", 1, watermark=NOW + AHEAD_MS + 1)]
    calm(world, 1)
    assert mark.watermark() == NOW + AHEAD_MS, (
        "it does not decrease, nor advance beyond a time that an instance can have seen"
    )


def test_windows_expire_by_the_clock_without_records_on_all_instances() -> None:
    world = World(random.Random(1), names="ab", parts=1)
    world.expires_by_clock = True
    for disk in world.disks:
        world.start(disk)
    calm(world, 5)
    grace = GRACE // timedelta(milliseconds=1)
    marks = [process.mark for process in world.processes.values()]
    assert [mark.watermark() for mark in marks] == [NOW - grace] * 2
    world.time_of_day += 7
    calm(world, 5)
    assert [mark.watermark() for mark in marks] == [NOW + 7 - grace] * 2
    assert max(one.states["flights"].watermark for one in world.log if one.states) == NOW + 7 - grace
    world.time_of_day -= 100_000
    calm(world, 5)
    assert [mark.watermark() for mark in marks] == [NOW + 7 - grace] * 2, "a clock that is set back revives no window"


def test_no_window_expires_by_the_clock_of_one_instance() -> None:
    world = World(random.Random(1), names="ab", parts=1)
    world.expires_by_clock = True
    for disk in world.disks:
        world.start(disk)
    world.processes["a"].ahead_ms = HOUR // timedelta(milliseconds=1)
    calm(world, 5)
    grace = GRACE // timedelta(milliseconds=1)
    assert [process.mark.watermark() for process in world.processes.values()] == [NOW - grace] * 2


def test_a_window_expires_when_the_announcement_of_its_watermark_is_read_back() -> None:
    """Before, a successor cannot know it: the announcement may never arrive."""
    world = World(random.Random(1), names="a", parts=1)
    world.expires_by_clock = True
    world.start(world.disks[0])
    calm(world, 5)
    process = world.processes["a"]
    for _ in range(50):
        world.time_of_day += 40
        calm(world, 0.1)
        assert process.mark.watermark() <= max(one.states["flights"].watermark for one in world.log if one.states)
    process.cut_until = world.now + 5
    world.time_of_day += 60_000
    calm(world, 4)
    assert process.outgoing
    assert process.mark.watermark() < NOW
    calm(world, 3)
    assert process.mark.watermark() == world.time_of_day - GRACE // timedelta(milliseconds=1)


@pytest.mark.parametrize("seed", range(30))
def test_a_restarted_instance_answers_only_with_the_watermark_of_the_others(seed: int) -> None:
    """It gets the partition at once, as the only replica, and has forgotten the earlier announcements."""
    world, partition = owned("ab", seed=seed)
    world.processes["b"].mark.advance_watermark(NOW)
    calm(world, 2)
    assert world.processes["a"].mark.watermark() == NOW
    world.leave(world.disks[0])
    world.start(world.disks[0])
    world.assign(partition, ["a"])
    for _ in range(500):
        world.pass_time(0.02)
        assert not world.answering(partition) or world.processes["a"].mark.watermark() == NOW
    assert world.answering(partition) == ["a"]


def test_an_instance_that_leaves_announces_its_last_watermark() -> None:
    """Else a window that it has answered as expired would live again, at the one that takes its partitions over."""
    world, _ = owned("ab", seed=1)
    calm(world, 2)
    world.processes["b"].mark.advance_watermark(NOW)
    world.leave(world.disks[1])
    calm(world, 1)
    assert world.processes["a"].mark.watermark() == NOW


@pytest.mark.parametrize("kills", [False, True])
def test_a_window_that_the_last_instance_expired_stays_expired_at_one_that_starts_then(*, kills: bool) -> None:
    """Its own clock is behind, so that it would answer the window as live again."""
    world, partition = owned("ab", seed=1)
    world.expires_by_clock = True
    for disk in world.disks:
        world.start(disk)
    calm(world, 5)
    world.leave(world.disks[0])
    calm(world, 2)
    world.time_of_day += 5_000
    calm(world, 2)
    expired = world.processes["b"].mark.watermark()
    assert expired == NOW + 5_000 - GRACE // timedelta(milliseconds=1)
    world.processes["b"].mark.advance_watermark(NOW + 5_000)  # by a record
    calm(world, 2)
    (world.kill if kills else world.leave)(world.disks[1])
    world.start(world.disks[0])
    process = world.processes["a"]
    process.ahead_ms = -60_000
    world.assign(partition, ["a"])
    calm(world, 10)
    assert world.answering(partition) == ["a"]
    assert process.mark.watermark() == expired, "the record may no longer be on the topic"


@pytest.mark.parametrize("seed", range(10))
def test_no_lease_is_released_for_an_instance_that_waits_for_one_that_is_gone(seed: int) -> None:
    """One is killed, and another started in its place: the partition of a third one is answered all the time."""
    world, partition = owned("abc", seed=seed, running=2)
    world.kill(world.disks[1])
    world.start(world.disks[2])
    world.assign(partition, ["c"])
    silent = 0
    for _ in range(500):
        world.pass_time(0.02, lively=0.9)
        silent = 0 if world.answering(partition) else silent + 1
        assert silent < 25, "half a second"
    assert world.answering(partition) == ["c"]


def test_a_restarted_instance_does_not_wait_for_one_that_is_gone() -> None:
    world, partition = owned("ab")
    for disk in world.disks:
        world.kill(disk)
    world.start(world.disks[0])
    world.assign(partition, ["a"])
    calm(world, TIMING.silence_s + 1.5)
    assert world.answering(partition) == ["a"]


def test_an_instance_announces_itself_at_once_to_a_new_one() -> None:
    world = World(random.Random(1), names="a", parts=1)
    world.start(world.disks[0])
    calm(world, 5)
    instance = world.processes["a"].instance
    instance.announce(world.now, EPOCH)
    assert not instance.step(world.now)
    instance.receive(claim("b", 1), world.now)
    assert instance.step(world.now)
    instance.announce(world.now, EPOCH)
    instance.receive(claim("b", 2), world.now)
    assert not instance.step(world.now)
    instance.receive(claim("b", 1, run=2), world.now)
    assert instance.step(world.now), "an instance that is back needs it too"


def test_an_instance_that_becomes_ready_announces_it_at_once() -> None:
    """The instance that releases the partition waits for this announcement, not for the next periodic one."""
    world = World(random.Random(1), names="a", parts=1)
    world.start(world.disks[0])
    (partition,) = world.end_offsets
    world.assign(partition, ["a"])
    calm(world, 5)
    instance = world.processes["a"].instance
    instance.lease_table.membership.receive(claim("b", 1, term=9), world.now)
    (peer,) = instance.lease_table.membership.peers()
    for peer.after_contact in (False, True):
        assert instance.step(world.now)
        (announced,) = instance.announce(world.now, EPOCH).states["flights"].parts
        assert announced.ready == peer.after_contact
        assert not instance.step(world.now)


def test_an_instance_that_does_not_read_its_own_announcements_is_not_ready() -> None:
    """A lease that is released for it would be taken by no instance."""
    world = World(random.Random(1), names="a", parts=1)
    world.start(world.disks[0])
    (partition,) = world.end_offsets
    world.assign(partition, ["a"])
    calm(world, 5)
    instance = world.processes["a"].instance
    instance.lease_table.membership.receive(claim("b", 1), world.now)
    for later, ready in ((0.0, True), (TIMING.lease_s, False)):
        (announced,) = instance.announce(world.now + later, EPOCH).states["flights"].parts
        assert announced.ready == ready


def _forever(self: LeaseTable, now: float) -> bool:
    del now
    return self._read_back > 0


def _at_once(self: CatchUpTarget, position: int) -> bool:
    del position
    self.reached = True
    return True


GUARDS: list[tuple[type, str, Callable[..., object]]] = [
    (LeaseTable, "is_valid", _forever),
    (LeaseTable, "_release_to", lambda *_: None),
    (CatchUpTarget, "check", _at_once),
    (Membership, "_is_gone", lambda *_: True),
]


@pytest.mark.parametrize(("owner", "name", "without"), GUARDS, ids=[name for _, name, _ in GUARDS])
def test_without_any_of_the_guards_answers_regress(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, without: Callable[..., object]
) -> None:
    monkeypatch.setattr(owner, name, without)
    assert any(chaos(seed, 2).regressions for seed in range(60))


def chaos(seed: int, replicas: int) -> World:
    world = World(random.Random(seed), replicas=replicas)
    for disk in world.disks:
        world.start(disk)
    for _ in range(STEPS):
        _inject_event(world)
        world.pass_time(world.rng.choice((0.02, 0.1, 0.1, 0.5)))
    return world


def recover(world: World) -> dict[StatePartition, str]:
    """End all faults, and assign each partition to one of the three instances; return the owners."""
    for disk in world.disks:
        if disk.name not in world.processes:
            world.start(disk)
    owners = {partition: "abc"[partition.number % 3] for partition in world.end_offsets}
    for partition, owner in owners.items():
        world.assign(partition, [owner])
    world.outage_until = 0
    world.most_read = 50
    for process in world.processes.values():
        process.stopped_until = process.cut_until = 0
    return owners


def _inject_event(world: World) -> None:
    rng = world.rng
    what = rng.random()
    disk = rng.choice(world.disks)
    process = world.processes.get(disk.name)
    if what < 0.03:
        (world.start if process is None or rng.random() < 0.5 else world.kill)(disk)
    elif what < 0.04:
        world.leave(disk)
    elif what < 0.06 and process is not None:
        process.stopped_until = world.now + rng.uniform(0.5, 3 * TIMING.silence_s)
    elif what < 0.08 and process is not None and len(process.instance.members()) > 1:
        process.cut_until = world.now + rng.uniform(0.5, 3 * TIMING.silence_s)
    elif what < 0.09:
        world.outage_until = world.now + rng.uniform(0.5, 3 * TIMING.silence_s)
    elif what < 0.2:
        partition: StatePartition = rng.choice(list(world.end_offsets))
        names = list(world.processes)
        world.assign(partition, rng.sample(names, min(len(names), rng.choice((0, 1, 1, 1, 2)))))
