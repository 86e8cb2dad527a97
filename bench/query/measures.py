"""The measures of a service that answers for keys, with their sizes."""

from dataclasses import dataclass

FILL_PER_S, LOAD_PER_S, PHASES = 60_000, 40_000, 5


@dataclass(frozen=True)
class Keys:
    """Keys that are all on the topic before a service starts, and then updated at a rate while they are queried."""

    name: str
    keys: int
    rate: int
    """Updates a second, of keys at random."""
    seconds: int
    """How long each part is measured."""
    subscribers: int
    pushes_only: bool = False
    """Whether only the delay of notifications is measured, for services that have subscribers."""

    @property
    def estimate_s(self) -> float:
        """About how long it takes."""
        phases = 1 if self.pushes_only else PHASES
        return self.keys / FILL_PER_S + self.keys / LOAD_PER_S + phases * (self.seconds + 5)

    def __str__(self) -> str:
        size = f"{self.keys:,} keys of 500 bytes, {self.rate:,} updates/s meanwhile"
        return f"{size}, {self.subscribers:,} subscribers" if self.pushes_only else f"{size}, {self.seconds} s each"


@dataclass(frozen=True)
class LoopMeasure:
    """Events that go through the job to the service, and are queried there; others come at a rate meanwhile."""

    name: str
    rate: int
    """The rate of the others, a second."""
    seconds: int
    warm_s: int
    """How long the job runs before, and until its first batch has ended."""

    def __str__(self) -> str:
        return f"{self.rate:,} other events/s, {self.seconds} s"


def measures(scale: int) -> tuple[Keys | LoopMeasure, ...]:
    """All of them, of a size that is divided by so much."""
    rate, seconds, subscribers = 10_000 // scale, max(3, 20 // scale), 1_000 // scale
    return (
        Keys("query-5m", 5_000_000 // scale, rate, seconds, subscribers),
        Keys("push-1k", 100_000 // scale, rate, 2 * seconds, subscribers, pushes_only=True),
        LoopMeasure("query-loop", 1_000, max(10, 120 // scale), max(20, 60 // scale)),
    )
