"""Whether a worker does its work: judged by progress, for a worker that hangs still answers a ping."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from contracts.metrics import worker as metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from contracts import Policy
    from contracts.metrics.counts import Counts

MOVES = (metrics.SNAPSHOTS, metrics.CALLS, metrics.ANSWERS, metrics.DEAD_LETTERS, metrics.COMMITS)
"""What grows while work moves on. Calls that fail count: while an API is down, asking it again is the work."""


def patience(stuck_after: timedelta, policies: Iterable[Policy]) -> timedelta:
    """How long nothing may move: as the settings say, and at least twice as long as an API may be left alone."""
    return max(stuck_after, *(2 * _silence(policy) for policy in policies), timedelta(0))


def _silence(policy: Policy) -> timedelta:
    """The longest that can lie between two calls of an API that has work."""
    rest = policy.breaker.open_for if policy.breaker else timedelta(0)
    turn = policy.rate.per / policy.rate.calls if policy.rate else timedelta(0)
    return policy.timeout + max(policy.retry_after_most + policy.backoff_most, rest) + turn


@dataclass(frozen=True)
class Standing:
    """Where a worker stands. Ages are in seconds."""

    polled_s: float
    """How long ago the consumer was polled."""
    moved_s: float
    """How long ago something moved, or there was nothing to do."""
    work: int
    """Snapshots to read or to look at, and requests that wait or are under way."""
    member: bool
    """Whether the group has given it its partitions, if only none."""
    stopping: bool

    def unhealthy(self, within: timedelta) -> str | None:
        """Why a restart is called for; None while all is well."""
        limit = within.total_seconds()
        if self.polled_s > limit:
            return f"the consumer was not polled for {self.polled_s:.0f} s"
        if self.work and self.moved_s > limit:
            return f"nothing moved for {self.moved_s:.0f} s, with {self.work} snapshots and requests to do"
        return None

    def unready(self) -> str | None:
        """Why it does no work now; None when it does."""
        if self.stopping:
            return "it is stopping"
        return None if self.member else "the consumer group has not taken it in yet"


class Pulse:
    """When the worker last polled, and when its work last moved on. `beat` after each poll."""

    def __init__(self, counts: Counts, clock: Callable[[], float]) -> None:
        self._counts = counts
        self._clock = clock
        self._polled = self._moved = clock()
        self._moves = 0.0

    def beat(self, work: int) -> None:
        """Note that the consumer was polled, with so much left to do."""
        self._polled = self._clock()
        moves = sum(self._counts.get(one) for one in MOVES)
        if moves != self._moves or not work:
            self._moves, self._moved = moves, self._polled

    def standing(self, work: int, *, member: bool, stopping: bool) -> Standing:
        """Where the worker stands now."""
        now = self._clock()
        return Standing(now - self._polled, now - self._moved, work, member, stopping)
