"""Decides when to restart a process, and when to give up: pure, the time is passed in."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class RestartPolicy:
    """At most `most` deaths within `within_s` seconds; the pause before a restart doubles with each of them."""

    most: int = 6
    within_s: float = 60.0
    first_pause_s: float = 0.25
    longest_pause_s: float = 8.0

    def pause(self, deaths: int) -> float:
        """Return the seconds to wait after this many deaths."""
        return min(self.longest_pause_s, self.first_pause_s * 2.0 ** (deaths - 1))


@dataclass
class Restarts:
    """The recent deaths of one process."""

    policy: RestartPolicy
    deaths: list[float] = field(default_factory=list)
    total: int = 0

    def died(self, now: float) -> float | None:
        """Return the seconds until the restart; None above the limit."""
        self.total += 1
        self.deaths = [at for at in self.deaths if now - at < self.policy.within_s] + [now]
        return None if len(self.deaths) > self.policy.most else self.policy.pause(len(self.deaths))
