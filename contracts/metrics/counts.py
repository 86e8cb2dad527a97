"""The counters of a catalogue of metrics, in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from prometheus_client import Metric as Family
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contracts.metrics.metric import Metric

Labels = tuple[str, ...]


class Counts(Collector):
    """The values of a catalogue in one process. Written by one thread only, which scrapes too.

    A count costs two lookups in plain dicts; a scrape does the rest. Raises ValueError for a metric that is
    counted with other labels than it declares.
    """

    def __init__(self, catalogue: Iterable[Metric]) -> None:
        self._values = {metric: _Values(metric) for metric in catalogue}
        self._histograms = {metric: _Histograms(metric) for metric in self._values if metric.kind == "histogram"}

    def add(self, metric: Metric, *labels: str, by: float = 1) -> None:
        """Count, under the values of the metric's labels in the order of declaration."""
        self._values[metric][labels] += by

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """Set a gauge."""
        _check(metric, labels)
        self._values[metric][labels] = value

    def clear(self, metric: Metric, *labels: str) -> None:
        """Drop a gauge's values whose labels begin with these, because they are outdated."""
        for full_labels in self.divided(metric, labels):
            del self._values[metric][full_labels]

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Record one value of a histogram."""
        self._histograms[metric][labels].note(value)

    def get(self, metric: Metric, *labels: str) -> float:
        """Return one value; 0 if it was never set. With fewer labels than declared, return the sum over the others."""
        if len(labels) == len(metric.labels):
            return self._values[metric].get(labels, 0)
        return sum(self.divided(metric, labels).values())

    def divided(self, metric: Metric, labels: Labels = ()) -> dict[Labels, float]:
        """The values by their labels, of those that begin with these."""
        values = self._values[metric].items()
        return {full_labels: value for full_labels, value in values if full_labels[: len(labels)] == labels}

    def histograms(self, metric: Metric) -> Mapping[Labels, HistogramCounts]:
        """A histogram's values by their labels; none of another metric."""
        return self._histograms.get(metric, {})

    def values(self) -> dict[str, float | dict[str, float]]:
        """The figures of a log line by name, in the catalogue's order: of histograms the numbers of values.

        Those with labels are mappings by the last label; Prometheus has the others too.
        """
        return {metric.name: self._by_last(metric) if metric.labels else self.get(metric) for metric in self._values}

    @override
    def collect(self) -> Iterator[Family]:
        """A family for each metric. One with labels has no samples before it was counted; the others begin at 0."""
        return (self._family(metric) for metric in self._values)

    def _by_last(self, metric: Metric) -> dict[str, float]:
        by_last: dict[str, float] = {}
        counts = {labels: histogram.count for labels, histogram in self.histograms(metric).items()}
        for labels, value in sorted((self.divided(metric) | counts).items()):
            by_last[labels[-1]] = by_last.get(labels[-1], 0) + value
        return by_last

    def _family(self, metric: Metric) -> Family:
        if metric.kind == "histogram":
            return self._histogram(metric)
        kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        family = kind(metric.family, metric.help, labels=metric.labels)
        values = self.divided(metric) if metric.labels else {(): self.get(metric)}
        for labels, value in values.items():
            family.add_metric(labels, value)
        return family

    def _histogram(self, metric: Metric) -> HistogramMetricFamily:
        family = HistogramMetricFamily(metric.family, metric.help, labels=metric.labels)
        for labels, histogram in self.histograms(metric).items():
            family.add_metric(labels, histogram.cumulative(), histogram.sum)
        return family


class LabelledCounts(Collector):
    """The counts of several workers in one process, each with labels of its own."""

    def __init__(self, counts: Sequence[tuple[Mapping[str, str], Counts]]) -> None:
        self._counts = counts

    @override
    def collect(self) -> Iterator[Family]:
        """A family for each metric, with the samples of all workers."""
        for families in zip(*(counts.collect() for _, counts in self._counts), strict=True):
            merged = Family(families[0].name, families[0].documentation, families[0].type)
            merged.samples = [
                sample._replace(labels={**labels, **sample.labels})
                for (labels, _), family in zip(self._counts, families, strict=True)
                for sample in family.samples
            ]
            yield merged


class HistogramCounts:
    """The number of values up to each bound, and the sum of all values."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def note(self, value: float) -> None:
        """Record one value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self._counts)

    def cumulative(self) -> list[tuple[str, float]]:
        """Each bound as Prometheus writes it, with the number of values that are not above it."""
        cumulative, below = [], 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            below += count
            cumulative.append(("+Inf" if bound == float("inf") else str(bound), float(below)))
        return cumulative


class _Values(dict[Labels, float]):
    """The values of one metric by their labels. The first access of a value checks its labels, and starts it at 0."""

    def __init__(self, metric: Metric) -> None:
        super().__init__()
        self._metric = metric

    def __missing__(self, labels: Labels) -> float:
        _check(self._metric, labels)
        return 0


class _Histograms(dict[Labels, HistogramCounts]):
    """The histograms of one metric by their labels. One without labels exists from the beginning."""

    def __init__(self, metric: Metric) -> None:
        super().__init__({} if metric.labels else {(): HistogramCounts(metric.buckets)})
        self._metric = metric

    def __missing__(self, labels: Labels) -> HistogramCounts:
        _check(self._metric, labels)
        histogram = self[labels] = HistogramCounts(self._metric.buckets)
        return histogram


def _check(metric: Metric, labels: Labels) -> None:
    if len(labels) != len(metric.labels):
        raise ValueError(f"{metric.name} is divided by {metric.labels or 'nothing'}, and was counted by {labels}")
