"""A lease is renewed while the job runs; the query stops when another job has it, or nobody can find out."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from spark_app.checkpoint import keeper
from spark_app.checkpoint.keeper import CONFIRM_S, UNANSWERED_S, guard, kept, renew, require_lease
from spark_app.checkpoint.lease import LEASE_S, PREFIX, RENEW_S, WATCH_S, newest
from spark_app.errors import CheckpointUnreachableError, LeaseLostError
from tests.spark_app.leasing import World, job
from tests.spark_app.running import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_app.checkpoint.lease import CheckpointLease


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
    renew(lease, Rounds(world, 20), lease.renew)
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

    renew(lease, Rounds(world, 10, outage), lease.renew)
    assert not lease.is_lost
    assert lease.renewed_at > LEASE_S, "it renews again"


@pytest.mark.parametrize(("is_fenced", "patience_s"), [(False, CONFIRM_S), (True, UNANSWERED_S)])
def test_the_query_stops_when_no_renewal_is_answered_and_not_before(*, is_fenced: bool, patience_s: float) -> None:
    world = World()
    lease = world.acquire(job("a"))
    stopped: list[float] = []
    warnings: list[str] = []

    def stop() -> bool:
        stopped.append(world.now)
        return len(stopped) == 1  # it runs no more

    ends = LEASE_S - CONFIRM_S + patience_s
    guard(lease, stop, warnings.append, Rounds(world, round(ends / WATCH_S) + 1), is_fenced=is_fenced)
    assert stopped == [ends, ends + WATCH_S]
    (warning,) = warnings
    assert f"not renewed for {ends:.0f} s" in warning
    lease.renew()
    guard(lease, stop, warnings.append, Rounds(world, 3), is_fenced=is_fenced)
    assert len(stopped) == 2


def test_slow_looks_do_not_keep_a_query_without_a_fence() -> None:
    world = World()
    lease = world.acquire(job("a"))
    stopped: list[float] = []

    def slow(_: int) -> None:
        world.now += 1.5

    def stop() -> bool:
        stopped.append(world.now)
        return True

    guard(lease, stop, lambda _: None, Rounds(world, 9, slow), is_fenced=False)
    assert stopped, "nine looks take 18 s"


@pytest.mark.parametrize("is_claimed", [False, True])
@pytest.mark.parametrize("frozen_s", [10.0, 60.0, 600.0])
@pytest.mark.parametrize("frozen_at", [5.0, 12.0, 40.0])  # with a fresh lease, one in doubt, and one that is overdue
def test_a_job_that_was_frozen_goes_on_unless_another_one_has_the_lease(
    frozen_at: float, frozen_s: float, *, is_claimed: bool
) -> None:
    world = World()
    lease = world.acquire(job("a"))
    stopped: list[float] = []
    looks = 200

    def stop() -> bool:
        stopped.append(world.now)
        return True

    def happen(left: int) -> None:
        look = looks - left
        if look == frozen_at / WATCH_S:
            world.now += frozen_s
        if look == frozen_at / WATCH_S and is_claimed:
            world.acquire(job("b", place=None))
        if look > (frozen_at + 20) / WATCH_S:  # a busy machine renews late
            renew(lease, Rounds(world, 1), lease.renew)

    guard(lease, stop, lambda _: None, Rounds(world, looks, happen), is_fenced=True)
    assert lease.is_lost == bool(stopped) == is_claimed
    assert lease.is_overdue() == is_claimed


def test_a_step_after_a_freeze_waits_for_a_renewal() -> None:
    """Of the thread of `kept`: two would write one file."""
    world, naps = World(), list[float]()
    lease = world.acquire(job("a"))

    def nap(seconds: float) -> None:
        naps.append(seconds)
        renew(lease, Rounds(world, 1), lease.renew)

    require_lease(lease, nap)
    assert naps == []
    world.now += LEASE_S
    require_lease(lease, nap)
    assert naps == [WATCH_S]


def test_a_step_after_a_freeze_fails_when_another_job_has_the_lease() -> None:
    world = World()
    lease = world.acquire(job("a"))
    world.acquire(job("b", place="another kernel"))
    with pytest.raises(LeaseLostError, match="host-b"):
        require_lease(lease, lambda _: renew(lease, Rounds(world, 1), lease.renew))


def test_a_step_after_a_suspension_fails_when_another_job_has_the_lease() -> None:
    """A machine that is suspended has a monotonic clock that stands still."""
    world = World()
    lease = world.acquire(job("a"))
    world.acquire(job("b", place="another kernel"))
    lease.renewed_at = world.now
    assert lease.problem() is None
    with pytest.raises(LeaseLostError, match="host-b"):
        require_lease(lease, world.sleep)


def test_a_step_does_not_wait_for_ever_for_a_renewal() -> None:
    """As of a thread that has died with its JVM."""
    world = World()
    lease = world.acquire(job("a"))
    world.now += LEASE_S
    with pytest.raises(CheckpointUnreachableError, match="was not renewed"):
        require_lease(lease, world.sleep)
    assert world.now - LEASE_S < UNANSWERED_S + RENEW_S


def test_a_query_behind_a_fence_goes_on_while_each_renewal_takes_longer_than_a_lease() -> None:
    world = World()
    lease = world.acquire(job("a"))
    warnings: list[str] = []

    def renew_slowly(left: int) -> None:
        if left % 50 == 0:
            lease.renewed_at = world.now - 2 * LEASE_S  # when the renewal that ends now began

    guard(lease, lambda: True, warnings.append, Rounds(world, 600, renew_slowly), is_fenced=True)
    assert world.now > 4 * UNANSWERED_S
    assert warnings == []


def test_the_query_stops_at_once_when_another_job_has_the_lease() -> None:
    world = World()
    lease = world.acquire(job("a"))
    world.acquire(job("b", place=None)).renew()
    lease.renewed_at = world.now
    renew(lease, Rounds(world, 9), lease.renew)
    assert lease.is_lost
    assert world.now == LEASE_S + RENEW_S
    warnings: list[str] = []
    guard(lease, lambda: True, warnings.append, Rounds(world, 1), is_fenced=True)
    assert warnings == ["another job has the lease of the checkpoint. The query stops"]
    with pytest.raises(LeaseLostError):
        lease.renew()


def test_a_job_that_exits_releases_its_own_lease_only() -> None:
    world = World()
    with kept(world.acquire(job("a")), lambda: False):
        assert len(world.content) == 1
    lease = world.acquire(job("a"))
    assert world.now == 0, "the first one released its lease"
    with kept(lease, lambda: False):
        successor = world.acquire(job("b", place=None))
    assert list(world.content) == [f"{PREFIX}{successor.number}"]
    successor.renew()


@pytest.mark.parametrize("is_complete", [True, False])
def test_only_a_complete_fence_makes_the_query_wait(monkeypatch: pytest.MonkeyPatch, *, is_complete: bool) -> None:
    fenced: list[bool] = []

    def noted(*arguments: Any) -> None:
        fenced.append(arguments[-1])

    class Stub:
        def renew(self, lease: CheckpointLease) -> None:
            lease.renew()

        def close(self) -> None:
            """Nothing is stored."""

    monkeypatch.setattr(keeper, "guard", noted)
    stub: Any = Stub()
    stub.is_complete = is_complete
    with kept(World().acquire(job("a")), lambda: False, fence=stub):
        until(lambda: fenced, "the guard runs")
    assert fenced == [is_complete]


def test_the_fence_is_closed_before_the_lease_is_released() -> None:
    world = World()
    lease = world.acquire(job("a"))
    released: list[bool] = []

    class Stub:
        is_complete = True

        def renew(self, lease: CheckpointLease) -> None:
            lease.renew()

        def close(self) -> None:
            stored = newest(world)
            assert stored is not None
            released.append(stored.has_ended_at(None))

    stub: Any = Stub()
    with kept(lease, lambda: False, fence=stub):
        assert not released
    assert released == [False]
    assert world.acquire(job("b", place=None)).number == 2
    assert world.now == 0, "the lease is released"
