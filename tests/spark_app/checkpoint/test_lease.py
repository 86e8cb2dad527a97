"""One job at a time uses a checkpoint; the next one starts when its owner is dead, refused while it is alive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_app.checkpoint.lease import LEASE_S, PREFIX, RENEW_S, CheckpointLease, newest, take_over
from spark_app.checkpoint.owner import this_job
from spark_app.errors import CheckpointInUseError, CheckpointUnreachableError, LeaseLostError
from tests.spark_app.leasing import World, job


def test_a_free_checkpoint_is_taken_at_once_and_given_back() -> None:
    world = World()
    lease = world.acquire(job("a"))
    assert (world.now, list(world.content)) == (0, [f"{PREFIX}1"])
    lease.release()
    assert world.acquire(job("b")).number == 2
    assert (world.now, list(world.content)) == (0, [f"{PREFIX}2"])


def test_a_second_job_is_refused_with_the_name_of_the_owner() -> None:
    world = World()
    lease = world.acquire(job("a"))
    world.meanwhile = lease.renew
    with pytest.raises(CheckpointInUseError, match=r"in use by the job on host-a with process \d+, since 2026-01-01"):
        world.acquire(job("b"))
    assert world.now <= RENEW_S


def test_a_lease_without_renewals_is_taken_over_after_its_end() -> None:
    world = World()
    lost = world.acquire(job("a"))
    world.acquire(job("b", place="elsewhere"))
    assert world.now == LEASE_S
    assert lost.is_overdue()
    with pytest.raises(LeaseLostError, match="to the job on host-b"):
        lost.renew()
    assert list(world.content) == [f"{PREFIX}2"]


@given(st.floats(0, 100), st.floats(0, 100))
def test_an_owner_calls_its_lease_overdue_before_another_job_takes_it(before: float, after: float) -> None:
    world = World()
    lease = world.acquire(job("a"))
    world.sleep(before)
    lease.renew()
    world.sleep(after)
    world.acquire(job("b"))
    assert lease.is_overdue()


def test_the_lease_of_a_dead_owner_on_this_machine_is_taken_over_at_once() -> None:
    world = World()
    world.acquire(job("a", pid=2**22 + 1))
    world.acquire(job("b"))
    assert world.now == 0


def test_a_process_that_took_the_number_of_a_dead_one_is_not_the_owner() -> None:
    world = World()
    world.acquire(job("a", pid=os.getpid()))
    world.acquire(job("b"))
    assert world.now == 0


@pytest.mark.parametrize("place", [None, "kernel 2"])
def test_the_processes_of_another_machine_are_not_judged(place: str | None) -> None:
    world = World()
    world.acquire(job("a", pid=2**22 + 1, place=place))
    world.acquire(job("b", place=None))
    assert world.now == LEASE_S


@pytest.mark.parametrize("content", ["", "{", '{"owner": 1}'])
def test_a_part_of_a_lease_is_waited_for_and_then_taken_over(content: str) -> None:
    world = World()
    world.content[f"{PREFIX}7"] = content
    assert world.acquire(job("b")).number == 8
    assert world.now == 2 * LEASE_S, "an owner may have renewed between two looks, so it waits once more"


def test_an_owner_that_dies_in_a_renewal_during_the_watch_is_waited_for_once_more() -> None:
    world = World()
    lease = world.acquire(job("a", place=None))

    def write_half() -> None:
        if world.now >= 5:
            world.content[f"{PREFIX}1"] = "{"

    world.meanwhile = write_half
    assert world.acquire(job("b")).number == 2
    assert lease.is_overdue()
    assert world.now <= 5 + 2 * LEASE_S


def test_a_renewal_between_two_halves_of_files_is_waited_for() -> None:
    world, name = World(), f"{PREFIX}1"
    lease = world.acquire(job("a"))
    world.content[name] = ""  # it writes

    def write_twice() -> None:
        world.now += LEASE_S
        lease.renew()
        world.content[name] = ""
        world.meanwhile = lambda: None

    world.meanwhile = write_twice
    world.acquire(job("b"))
    assert lease.is_overdue()


def test_a_late_renewal_before_the_successor_creates_its_number_is_waited_for() -> None:
    world = World()
    lease = world.acquire(job("a"))
    create = world.create

    def create_after_renewal(name: str, content: str) -> bool:
        lease.renew()
        return create(name, content)

    world.create = create_after_renewal  # type: ignore[method-assign]
    world.acquire(job("b"))
    assert world.now == 2 * LEASE_S
    assert lease.is_overdue()


def test_a_successor_that_dies_while_it_waits_does_not_end_the_lease_before_it() -> None:
    world = World()
    frozen = world.acquire(job("a"))

    def die() -> None:
        raise KeyboardInterrupt

    world.meanwhile = die
    with pytest.raises(KeyboardInterrupt):
        take_over(world, job("b", pid=2**22 + 1), world.clock, world.sleep)
    world.meanwhile = lambda: None
    assert world.acquire(job("c")).number == 3
    assert frozen.is_overdue()
    assert list(world.content) == [f"{PREFIX}3"]


def test_a_renewal_during_a_takeover_fails() -> None:
    world = World()
    lease = world.acquire(job("a"))
    overwrite = world.overwrite

    def overwrite_after_takeover(name: str, content: str) -> None:
        world.overwrite = overwrite  # type: ignore[method-assign]
        world.acquire(job("b"))
        overwrite(name, content)

    world.overwrite = overwrite_after_takeover  # type: ignore[method-assign]
    with pytest.raises(LeaseLostError):
        lease.renew()
    assert lease.is_overdue()


def test_a_job_that_was_frozen_in_a_renewal_finds_a_successor_that_has_ended() -> None:
    world = World()
    lease = world.acquire(job("a"))
    overwrite = world.overwrite

    def overwrite_after_successor(name: str, content: str) -> None:
        world.overwrite = overwrite  # type: ignore[method-assign]
        world.acquire(job("b")).release()
        overwrite(name, content)

    world.overwrite = overwrite_after_successor  # type: ignore[method-assign]
    with pytest.raises(LeaseLostError):
        lease.renew()


def test_a_job_that_took_a_lease_over_while_it_was_frozen_does_not_start() -> None:
    world = World()
    world.acquire(job("a"))
    read = world.read

    def read_after_successor(name: str) -> str | None:
        if name == f"{PREFIX}2" and name in world.content:
            world.read = read  # type: ignore[method-assign]
            content = read(name)
            world.acquire(job("c"))
            return content
        return read(name)

    world.read = read_after_successor  # type: ignore[method-assign]
    with pytest.raises(LeaseLostError, match="host-c"):
        world.acquire(job("b"))


def test_a_file_that_a_successor_deletes_is_not_the_newest() -> None:
    world = World()
    world.acquire(job("a", pid=2**22 + 1))
    read = world.read

    def read_after_successor(name: str) -> str | None:
        world.read = read  # type: ignore[method-assign]
        world.meanwhile = world.acquire(job("b")).renew
        return read(name)

    world.read = read_after_successor  # type: ignore[method-assign]
    with pytest.raises(CheckpointInUseError, match="host-b"):
        world.acquire(job("c"))


def test_a_listing_with_a_file_that_is_not_there_ends_the_start() -> None:
    world = World()
    reads = iter(range(1000))

    def missing(name: str) -> str | None:
        assert next(reads, None) is not None, f"it reads {name} for ever"
        return None

    world.names = lambda: [f"{PREFIX}3"]  # type: ignore[method-assign]
    world.read = missing  # type: ignore[method-assign]
    with pytest.raises(CheckpointUnreachableError, match="a listing has a lease that is not there"):
        world.acquire(job("a"))


def test_of_two_jobs_that_create_one_file_in_an_object_store_the_last_one_starts() -> None:
    world, last = World(is_exclusive=False), job("last")

    def write() -> None:
        content = newest(world)
        assert content is not None
        world.overwrite(f"{PREFIX}1", content.content.replace("host-first", "host-last").replace('"first"', '"last"'))
        world.meanwhile = CheckpointLease(world, last, 1, world.clock, world.now).renew

    world.meanwhile = write
    with pytest.raises(CheckpointInUseError, match="host-last"):
        world.acquire(job("first"))
    world.meanwhile()


def test_a_job_whose_number_lands_late_in_an_object_store_waits_until_the_other_one_publishes_no_more() -> None:
    world = World(is_exclusive=False)
    first = world.acquire(job("first"))
    stored = dict(world.content)
    world.content.clear()  # the late one looked before the first one wrote
    create = world.create

    def create_late(name: str, content: str) -> bool:
        world.content.update(stored)
        first.renew()
        world.content.clear()
        return create(name, content)

    world.create = create_late  # type: ignore[method-assign]
    assert world.acquire(job("late")).number == first.number
    assert first.is_overdue()


def test_a_job_that_another_one_has_overwritten_in_an_object_store_does_not_change_its_lease() -> None:
    world = World(is_exclusive=False)
    lease, name = world.acquire(job("a")), f"{PREFIX}1"
    world.overwrite(name, world.content[name].replace('"a"', '"b"'))
    with pytest.raises(LeaseLostError):
        lease.renew()
    lease.release()
    stored = newest(world)
    assert stored is not None
    assert stored.owner is not None
    assert stored.owner.id == "b"
    assert not stored.has_ended_at(None)


def test_a_frozen_owner_does_not_destroy_the_lease_of_its_successor() -> None:
    world = World()
    frozen = world.acquire(job("a"))
    successor = world.acquire(job("b", place=None))
    world.overwrite(f"{PREFIX}{frozen.number}", "written by the frozen one")
    successor.renew()
    stored = newest(world)
    assert stored is not None
    assert stored.owner == successor.owner


@pytest.mark.parametrize("content", ["", "{"])
def test_a_lease_is_lost_to_a_successor_whose_file_is_not_written_yet(content: str) -> None:
    world = World()
    lease = world.acquire(job("a"))
    world.content[f"{PREFIX}2"] = content
    with pytest.raises(LeaseLostError):
        lease.renew()


def test_a_killed_process_is_dead_before_its_parent_notices() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    spark = Mock(**{"sparkContext._jvm.java.lang.ProcessHandle.current.return_value.pid.return_value": child.pid})
    me = this_job(spark)
    owner = me.model_copy(update={"processes": me.processes[1:]})
    assert not owner.is_dead_here(me.place)
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert owner.is_dead_here(me.place)
    assert not me.is_dead_here(me.place)
    child.communicate()


def test_a_lease_is_taken_over_when_the_job_that_has_it_has_stopped() -> None:
    world = World()
    former = world.acquire(job("a"))
    stops_at = 7.0

    def meanwhile() -> None:
        if not former.is_lost:
            try:
                former.renew()
            except LeaseLostError:
                former.is_lost = True
        if world.now >= stops_at:
            former.release()

    world.meanwhile = meanwhile
    lease = take_over(world, job("b"), world.clock, world.sleep)
    assert former.is_lost
    assert world.now == stops_at
    lease.renew()
    lease.release()
    assert world.acquire(job("c")).number == 3


def test_a_lease_of_a_job_that_does_not_answer_is_taken_over_when_it_has_run_out() -> None:
    world = World()
    world.acquire(job("a"))
    take_over(world, job("b"), world.clock, world.sleep)
    assert world.now >= LEASE_S


def test_a_lease_of_a_dead_job_is_taken_over_at_once() -> None:
    world = World()
    world.acquire(job("a", pid=1 << 22))
    take_over(world, job("b"), world.clock, world.sleep)
    assert world.now == 0.0


def test_a_checkpoint_without_a_lease_is_taken_over_at_once() -> None:
    world = World()
    assert take_over(world, job("b"), world.clock, world.sleep).number == 1
    assert world.now == 0.0
