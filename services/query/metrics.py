"""The object that counts what contracts/metrics/query.py names, and tells it to Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from contracts.metrics.query import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric as Family

    from contracts.metrics import Metric

Labels = tuple[str, ...]


class Metrics(Collector):
    """The values of the catalogue in one instance. Written by the event loop's thread only.

    To count costs one look into a plain dict; a scrape pays for the rest.
    """

    def __init__(self) -> None:
        self._values: dict[Metric, defaultdict[Labels, float]] = {one: defaultdict(float) for one in CATALOGUE}
        self._noted: dict[Metric, list[int]] = {one: [0] * (len(one.buckets) + 1) for one in CATALOGUE if one.buckets}
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def add(self, metric: Metric, *labels: str, by: float = 1) -> None:
        """Count, under the values of the metric's labels in the order of declaration."""
        self._values[metric][labels] += by

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """Say what a gauge stands at."""
        self._values[metric][labels] = value

    def observe(self, metric: Metric, value: float) -> None:
        """Note one value of a histogram, which has no labels here."""
        self._noted[metric][bisect_left(metric.buckets, value)] += 1
        self._values[metric][()] += value

    def get(self, metric: Metric, *labels: str) -> float:
        """One value; with fewer labels than declared, the sum over the others. Of a histogram, the sum."""
        return sum(value for found, value in self._values[metric].items() if found[: len(labels)] == labels)

    def text(self) -> bytes:
        """All figures, and those of the process beside them, in Prometheus' text format."""
        return generate_latest(self._registry)

    @override
    def collect(self) -> Iterator[Family]:
        """A family for each metric. One with labels has no samples before it was counted; the others begin at 0."""
        return (self._family(metric) for metric in CATALOGUE)

    def _family(self, metric: Metric) -> Family:
        if metric.kind == "histogram":
            return self._histogram(metric)
        kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        family = kind(metric.family, metric.help, labels=metric.labels)
        values = self._values[metric] if metric.labels else {(): self.get(metric)}
        for labels, value in values.items():
            family.add_metric(labels, value)
        return family

    def _histogram(self, metric: Metric) -> HistogramMetricFamily:
        family = HistogramMetricFamily(metric.family, metric.help, labels=metric.labels)
        bounds = (*map(str, metric.buckets), "+Inf")
        below = map(float, accumulate(self._noted[metric]))
        family.add_metric((), list(zip(bounds, below, strict=True)), self.get(metric))
        return family
