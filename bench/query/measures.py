"""What is measured of a service that answers for keys, and how much of it."""

from dataclasses import dataclass

FILL_PER_S, LOAD_PER_S, PHASES = 60_000, 40_000, 5


@dataclass(frozen=True)
class Keys:
    """Keys that are all on the topic before a service starts, and then updated at a rate while they are asked for."""

    name: str
    keys: int
    rate: int
    """Updates a second, of keys at random."""
    seconds: int
    """How long each part is measured."""
    subscribers: int

    @property
    def estimate_s(self) -> float:
        """About how long it takes."""
        return self.keys / FILL_PER_S + self.keys / LOAD_PER_S + PHASES * (self.seconds + 5)

    def __str__(self) -> str:
        return f"{self.keys:,} keys of 500 bytes, {self.rate:,} updates/s meanwhile, {self.seconds} s each"


def measures(scale: int) -> tuple[Keys, ...]:
    """All of them, of a size that is divided by so much."""
    return (Keys("query-5m", 5_000_000 // scale, 10_000 // scale, max(3, 20 // scale), 1_000 // scale),)
