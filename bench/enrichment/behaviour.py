"""How the API behaves that workers are measured against, and what it answers."""

from dataclasses import dataclass
from typing import Any

DISTRICTS = 97
LIMITS = 50


@dataclass(frozen=True)
class Behaviour:
    """An API's latency and faults. Times are in seconds."""

    latency_s: float = 0.05
    slow_one_in: int | None = None
    """One call in so many takes `slow_s`; the requested value decides which ones."""
    slow_s: float = 5.0
    quota: int | None = None
    """So many calls a second are answered, and the others with 429."""
    down_after_s: float | None = None
    """So long after its first call it breaks its connections, and refuses new ones for `down_s`."""
    down_s: float = 60.0

    def __str__(self) -> str:
        parts = [f"{1000 * self.latency_s:.0f} ms"]
        if self.slow_one_in:
            parts.append(f"1 in {self.slow_one_in} takes {self.slow_s:g} s")
        if self.quota:
            parts.append(f"{self.quota:,} calls/s allowed")
        if self.down_after_s is not None:
            parts.append(f"down for {self.down_s:g} s")
        return ", ".join(parts)

    def delay(self, number: int) -> float:
        """How long the answer about this place takes."""
        return self.slow_s if self.slow_one_in and number % self.slow_one_in == 0 else self.latency_s


def place(number: int) -> dict[str, Any]:
    """Return the API's answer about the place of this number."""
    return {
        "number": number,
        "name": f"Place {number}",
        "district": f"District {number % DISTRICTS}",
        "limit_kmh": 30.5 + number % LIMITS,
    }
