"""The object that counts what contracts/metrics/worker.py names."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from contracts.metrics.worker import CATALOGUE

if TYPE_CHECKING:
    from contracts.metrics import Metric

Key = tuple["Metric", tuple[str, ...]]


class Metrics:
    """The values of the catalogue in one worker. Written by the event loop's thread only.

    To count costs one look into a plain dict; a scrape pays for the rest. Raises ValueError for a metric that is
    counted with other labels than it declares.
    """

    def __init__(self) -> None:
        self._values = _Values()
        self._histograms: dict[Key, Histogram] = {}

    def add(self, metric: Metric, *labels: str, by: int = 1) -> None:
        """Count, under the values of the metric's labels in the order of declaration."""
        self._values[metric, labels] += by

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """Say what a gauge stands at."""
        _check(metric, labels)
        self._values[metric, labels] = value

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Note one value of a histogram."""
        found = self._histograms.get((metric, labels))
        if found is None:
            _check(metric, labels)
            found = self._histograms[metric, labels] = Histogram(metric.buckets)
        found.note(value)

    def get(self, metric: Metric, *labels: str) -> float:
        """One value; 0 if it was never touched. With fewer labels than declared, the sum over the others."""
        return sum(self.divided(metric, labels).values())

    def divided(self, metric: Metric, labels: tuple[str, ...] = ()) -> dict[tuple[str, ...], float]:
        """The values by their labels, of those that begin with these."""
        return {
            found: value
            for (one, found), value in self._values.items()
            if one is metric and found[: len(labels)] == labels
        }

    def histograms(self, metric: Metric) -> dict[tuple[str, ...], Histogram]:
        """A histogram's values by their labels."""
        return {labels: found for (one, labels), found in self._histograms.items() if one is metric}

    def values(self) -> dict[str, float | dict[str, float]]:
        """The figures of a log line by name, in the catalogue's order: of histograms the numbers of values.

        Those with labels are mappings by the last label; Prometheus has the others too.
        """
        return {metric.name: self._by_last(metric) if metric.labels else self.get(metric) for metric in CATALOGUE}

    def _by_last(self, metric: Metric) -> dict[str, float]:
        found: dict[str, float] = {}
        counts = {labels: one.count for labels, one in self.histograms(metric).items()}
        for labels, value in sorted((self.divided(metric) | counts).items()):
            found[labels[-1]] = found.get(labels[-1], 0) + value
        return found


class Histogram:
    """How many values were at most each bound, with their sum."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def note(self, value: float) -> None:
        """Note one value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many values."""
        return sum(self._counts)

    def cumulative(self) -> list[tuple[str, float]]:
        """Each bound as Prometheus writes it, with the number of values that are not above it."""
        found, below = [], 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            below += count
            found.append(("+Inf" if bound == float("inf") else str(bound), float(below)))
        return found


class _Values(dict[Key, float]):
    """Begins at 0 what is counted for the first time, and only then looks at its labels."""

    def __missing__(self, key: Key) -> float:
        _check(*key)
        return 0


def _check(metric: Metric, labels: tuple[str, ...]) -> None:
    if len(labels) != len(metric.labels):
        raise ValueError(f"{metric.name} is divided by {metric.labels or 'nothing'}, and was counted by {labels}")
