"""The health of a worker, by its progress: a worker that hangs still answers HTTP requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta


@dataclass(frozen=True)
class HealthStatus:
    """The facts behind a worker's health. Ages are in seconds."""

    polled_s: float
    """The time since the consumer was polled."""
    moved_s: float
    """The time since the last progress, or since there was nothing to do."""
    backlog: int
    """Unread and unprocessed records, and unanswered requests."""
    is_member: bool
    """Whether the group has assigned partitions to it, possibly none."""
    is_stopping: bool
    blocked_by: str | None = None
    """Why no records can be read without an operator's action."""
    hindered_by: str | None = None
    """Why the work waits for something outside of the process."""

    def unhealthy(self, within: timedelta) -> str | None:
        """Return why the worker needs a restart; None if it is healthy."""
        if self.blocked_by is not None:
            return self.blocked_by
        limit = within.total_seconds()
        if self.polled_s > limit:
            return f"the consumer was not polled for {self.polled_s:.0f} s"
        if self.backlog and self.moved_s > limit:
            return f"nothing moved for {self.moved_s:.0f} s, with {self.backlog} records and requests to do"
        return None

    def unready(self) -> str | None:
        """Return why the worker does not work now; None if it does."""
        if self.is_stopping:
            return "it is stopping"
        if self.hindered_by is not None:
            return self.hindered_by
        return None if self.is_member else "the consumer group has not taken it in yet"


class Pulse:
    """The times of the last poll and of the last progress. Call `beat` after each poll."""

    def __init__(self, progress: Callable[[], float], clock: Callable[[], float]) -> None:
        self._progress = progress
        self._clock = clock
        self._polled = self._moved = clock()
        self._last = progress()

    def beat(self, backlog: int) -> None:
        """Note that the consumer was polled, with this backlog."""
        self._polled = self._clock()
        progress = self._progress()
        if progress != self._last or not backlog:
            self._last, self._moved = progress, self._polled

    def health(
        self,
        backlog: int,
        *,
        is_member: bool,
        is_stopping: bool,
        blocked_by: str | None = None,
        hindered_by: str | None = None,
    ) -> HealthStatus:
        """Return the health now."""
        now = self._clock()
        return HealthStatus(
            now - self._polled, now - self._moved, backlog, is_member, is_stopping, blocked_by, hindered_by
        )
