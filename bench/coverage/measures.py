"""The measures of coverage, and their sizes."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, islice
from random import Random

from typing_extensions import override

from bench.coverage.seconds import LOST, SEED, is_present
from bench.harness.load import SensorReading
from bench.windows.measures import HOUR_S, WindowCounts

FILL_PER_S = 5_000


@dataclass(frozen=True)
class CoverageCost(WindowCounts):
    """A backlog of a second of each patient after the other, all in one hour; and a short one, which is its begin."""

    @property
    @override
    def short_events(self) -> int:
        return self.events // 5

    @override
    def readings(self, end: float) -> Iterator[SensorReading]:
        return islice(self._readings(int(end // HOUR_S * HOUR_S)), self.events)

    def _readings(self, begins: int) -> Iterator[SensorReading]:
        random, sent = Random(SEED), [0] * self.keys  # noqa: S311  # a load keeps no secret
        first_seen = _iso(begins)
        for second in count(begins):
            ts = _iso(second)
            for patient in range(self.keys):
                if is_present(random):
                    sent[patient] += 1
                    yield SensorReading(f"p{patient}", sent[patient], first_seen, ts, 0.0)

    def __str__(self) -> str:
        return f"{self.events:,} events of {self.keys:,} patients, one a second, {LOST:.0%} of them lost"


@dataclass(frozen=True)
class CoverageQueries:
    """Queries of so many hours of a patient."""

    name: str
    patients: int
    hours: int
    seconds: int
    """How long they are measured."""

    @property
    def estimate_s(self) -> float:
        """About how long it takes."""
        return self.patients * self.hours / FILL_PER_S + 2 * self.seconds

    def __str__(self) -> str:
        return f"{self.hours} hours with a step of 1 s of {self.patients:,} patients"


def measures(scale: int) -> tuple[CoverageCost | CoverageQueries, ...]:
    """All of them, of a size that is divided by so much."""
    return (
        CoverageCost("coverage-cost", 3_000_000 // scale, 1_000),
        CoverageQueries("coverage-query", 1_000 // scale, 3, max(2, 20 // scale)),
    )


def _iso(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat(timespec="microseconds")
