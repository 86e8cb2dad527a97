"""The measure `chunk-visible`, and its sizes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ChunkVisibility:
    """Patients whose monitors send a chunk each second."""

    name: str
    patients: int
    seconds: int
    warm_s: int
    """How long the job runs before."""

    @property
    def estimate_s(self) -> float:
        """About how long it takes."""
        return self.seconds + self.warm_s

    def __str__(self) -> str:
        return f"{self.patients:,} patients with a chunk of 100 samples a second, {self.seconds} s"


def measures(scale: int) -> tuple[ChunkVisibility, ...]:
    """All of them, of a size that is divided by so much."""
    return (ChunkVisibility("chunk-visible", 50, max(10, 180 // scale), max(15, 60 // scale)),)
