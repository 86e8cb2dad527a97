"""The measure `raw`, and its size."""

from dataclasses import dataclass

CHUNKS_PER_S = 10_000


@dataclass(frozen=True)
class RawChunks:
    """Chunks that are all there before the job starts. The first part of them warms it up."""

    name: str
    chunks: int

    @property
    def skipped(self) -> int:
        """How many chunks are decoded before it counts."""
        return self.chunks * 2 // 5

    @property
    def estimate_s(self) -> float:
        """About how long it takes."""
        return self.chunks / CHUNKS_PER_S

    def __str__(self) -> str:
        return f"{self.chunks:,} chunks"


def measures(scale: int) -> tuple[RawChunks, ...]:
    """All of them, of a size that is divided by so much."""
    return (RawChunks("raw", 100_000 // scale),)
