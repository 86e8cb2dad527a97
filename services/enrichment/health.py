"""The health of a worker, by its progress: a worker that hangs still answers HTTP requests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from contracts.metrics import worker as metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from contracts import Policy
    from contracts.metrics.counts import Counts

PROGRESS = (metrics.SNAPSHOTS, metrics.CALLS, metrics.TRIALS, metrics.ANSWERS, metrics.DEAD_LETTERS, metrics.COMMITS)
"""The counters of progress. Failed calls count: while an API is down, probing it is the work."""


def patience(stuck_after: timedelta, policies: Iterable[Policy]) -> timedelta:
    """Return the longest time without progress: the setting, or twice the longest pause between calls of an API."""
    return max(stuck_after, *(2 * _longest_pause(policy) for policy in policies), timedelta(0))


def _longest_pause(policy: Policy) -> timedelta:
    """The longest time between two calls of an API with pending requests."""
    rest = policy.breaker.open_for if policy.breaker else timedelta(0)
    turn = policy.rate.per / policy.rate.calls if policy.rate else timedelta(0)
    return policy.timeout + max(policy.max_retry_after + policy.max_backoff, rest) + turn


@dataclass(frozen=True)
class HealthStatus:
    """The facts behind a worker's health. Ages are in seconds."""

    polled_s: float
    """The time since the consumer was polled."""
    moved_s: float
    """The time since the last progress, or since there was nothing to do."""
    backlog: int
    """Unread and unplanned snapshots, and unanswered requests."""
    is_member: bool
    """Whether the group has assigned partitions to it, possibly none."""
    is_stopping: bool
    blocked_by: str | None = None
    """Why no snapshots can be read."""

    def unhealthy(self, within: timedelta) -> str | None:
        """Return why the worker needs a restart; None if it is healthy."""
        if self.blocked_by is not None:
            return self.blocked_by
        limit = within.total_seconds()
        if self.polled_s > limit:
            return f"the consumer was not polled for {self.polled_s:.0f} s"
        if self.backlog and self.moved_s > limit:
            return f"nothing moved for {self.moved_s:.0f} s, with {self.backlog} snapshots and requests to do"
        return None

    def unready(self) -> str | None:
        """Return why the worker does not work now; None if it does."""
        if self.is_stopping:
            return "it is stopping"
        return None if self.is_member else "the consumer group has not taken it in yet"


class Pulse:
    """The times of the last poll and of the last progress. Call `beat` after each poll."""

    def __init__(self, counts: Counts, clock: Callable[[], float]) -> None:
        self._counts = counts
        self._clock = clock
        self._polled = self._moved = clock()
        self._progress = 0.0

    def beat(self, backlog: int) -> None:
        """Note that the consumer was polled, with this backlog."""
        self._polled = self._clock()
        progress = sum(self._counts.get(one) for one in PROGRESS)
        if progress != self._progress or not backlog:
            self._progress, self._moved = progress, self._polled

    def health(
        self, backlog: int, *, is_member: bool, is_stopping: bool, blocked_by: str | None = None
    ) -> HealthStatus:
        """Return the health now."""
        now = self._clock()
        return HealthStatus(now - self._polled, now - self._moved, backlog, is_member, is_stopping, blocked_by)
