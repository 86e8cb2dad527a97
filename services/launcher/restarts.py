"""When a part that died is started again, and when that is no use any more: pure, the time is passed in."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class RestartPolicy:
    """At most so many deaths within so many seconds; the pause before a start doubles with each of them."""

    most: int = 6
    within_s: float = 60.0
    first_pause_s: float = 0.25
    longest_pause_s: float = 8.0

    def pause(self, deaths: int) -> float:
        """Seconds to wait after so many deaths."""
        return min(self.longest_pause_s, self.first_pause_s * 2.0 ** (deaths - 1))


@dataclass
class Restarts:
    """The deaths of one part that still count."""

    policy: RestartPolicy
    deaths: list[float] = field(default_factory=list)
    total: int = 0

    def died(self, now: float) -> float | None:
        """Seconds until the next start; None when it died too often."""
        self.total += 1
        self.deaths = [at for at in self.deaths if now - at < self.policy.within_s] + [now]
        return None if len(self.deaths) > self.policy.most else self.policy.pause(len(self.deaths))
