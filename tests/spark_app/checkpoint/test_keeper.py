"""A lease is renewed while the job runs; the query stops when it may be another job's."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from spark_app.checkpoint.keeper import guard, kept, renew
from spark_app.checkpoint.lease import LEASE_S, RENEW_S
from spark_app.errors import CheckpointUnreachableError, LeaseLostError
from tests.spark_app.leasing import World, job

if TYPE_CHECKING:
    from collections.abc import Callable


class Rounds(threading.Event):
    """Ends after some rounds, each of which takes its time by the world's clock."""

    def __init__(self, world: World, count: int, before: Callable[[int], object] = lambda _: None) -> None:
        super().__init__()
        self._world, self._left, self._before = world, count, before

    def wait(self, timeout: float | None = None) -> bool:
        self._world.now += timeout or 0
        self._left -= 1
        self._before(self._left)
        return self._left < 0


def test_a_lease_is_extended_until_the_job_stops() -> None:
    world = World()
    lease = world.acquire(job("a"))
    renew(lease, Rounds(world, 20))
    assert world.now > 3 * LEASE_S
    assert not lease.is_overdue()


def test_a_file_system_that_is_away_for_a_while_loses_no_lease() -> None:
    world = World()
    lease = world.acquire(job("a"))
    there = world.names

    def away() -> list[str]:
        raise CheckpointUnreachableError("folder", "away")

    def outage(left: int) -> None:
        world.names = away if left > 2 else there  # type: ignore[method-assign]

    renew(lease, Rounds(world, 10, outage))
    assert lease.renewals > 0
    assert (lease.is_lost, lease.is_overdue()) == (False, False)


def test_the_query_stops_while_the_lease_is_overdue_and_not_before() -> None:
    world = World()
    lease = world.acquire(job("a"))
    stopped: list[float] = []
    warnings: list[str] = []

    def stop() -> bool:
        stopped.append(world.now)
        return len(stopped) == 1  # it runs no more

    guard(lease, stop, warnings.append, Rounds(world, 31))
    assert stopped == [LEASE_S, LEASE_S + 0.5]
    (warning,) = warnings
    assert f"not renewed for {LEASE_S:.0f} s" in warning
    lease.renew()
    guard(lease, stop, warnings.append, Rounds(world, 3))
    assert len(stopped) == 2


@pytest.mark.parametrize("is_claimed", [False, True])
def test_after_a_standstill_the_query_stops_only_if_another_job_claims_the_lease(*, is_claimed: bool) -> None:
    world = World()
    lease = world.acquire(job("a"))
    stopped: list[float] = []

    def stop() -> bool:
        stopped.append(world.now)
        return True

    def stand_still(left: int) -> None:
        if left == 20:
            world.now += 60
        if left == 20 and is_claimed:
            world.acquire(job("b", place=None))
        if left == 18:  # the other thread has some processor time
            renew(lease, Rounds(world, 1))

    guard(lease, stop, lambda _: None, Rounds(world, 25, stand_still))
    assert bool(stopped) == is_claimed


def test_the_query_stops_at_once_when_another_job_has_the_lease() -> None:
    world = World()
    lease = world.acquire(job("a"))
    world.acquire(job("b", place=None)).renew()
    lease.renewed_at = world.now
    renew(lease, Rounds(world, 9))
    assert lease.is_lost
    assert world.now == LEASE_S + RENEW_S
    warnings: list[str] = []
    guard(lease, lambda: True, warnings.append, Rounds(world, 1))
    assert warnings == ["another job has the lease of the checkpoint. The query stops"]
    with pytest.raises(LeaseLostError):
        lease.renew()


def test_a_job_that_exits_releases_its_own_lease_only() -> None:
    world = World()
    with kept(world.acquire(job("a")), lambda: False):
        assert len(world.content) == 1
    assert world.content == {}
    with kept(world.acquire(job("a")), lambda: False):
        world.acquire(job("b", place=None))
    assert len(world.content) == 1
