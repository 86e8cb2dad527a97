"""The measurements of a worker, and their sizes."""

from dataclasses import dataclass, field

from bench.enrichment.behaviour import Behaviour

CALLS_PER_S, IDLE_PER_S, FAULT_S = 4_000, 50_000, 60.0


@dataclass(frozen=True)
class Calls:
    """Snapshots that are all there before a worker starts, and an API that behaves so."""

    name: str
    events: int
    """How many snapshots, each of another vehicle."""
    behaviour: Behaviour = field(default_factory=Behaviour)
    application: str = "app"
    """The name of the application in application.py."""
    answered: bool = False
    """Whether the snapshots hold the answers already, so that they need no call."""
    fault: str | None = None
    """The fault in the middle of a run: `kill` is kill -9, and another worker starts."""
    patience_s: float = 45.0
    """How long a worker may finish nothing before it is given up."""
    peers: bool = False
    """Whether the peers are measured by it too."""

    @property
    def estimate_s(self) -> float:
        """About how long it takes."""
        return FAULT_S * (self.behaviour.down_after_s is not None or self.fault is not None) + self.events / (
            IDLE_PER_S if self.answered else self.behaviour.quota or CALLS_PER_S
        )

    def __str__(self) -> str:
        what = "that need no call" if self.answered else f"one call each, {self.behaviour}"
        return f"{self.events:,} snapshots, {what}" + (f", {self.fault} -9 in the middle" if self.fault else "")


SLOW = Behaviour(slow_one_in=100)
QUOTA = 1_000


def measures(scale: int) -> tuple[Calls, ...]:
    """All of them, of a size that is divided by so much."""
    return (
        Calls("worker-calls", 150_000 // scale, peers=True),
        Calls("worker-idle", 1_500_000 // scale, answered=True),
        Calls("worker-slow", 150_000 // scale, SLOW, peers=True),
        Calls("worker-quota", 30_000 // scale, Behaviour(quota=QUOTA), application="limited"),
        Calls("worker-outage", 120_000, Behaviour(down_after_s=8), patience_s=120),  # fewer end before the outage does
        Calls("worker-kill", 40_000 // scale, fault="kill"),
    )
