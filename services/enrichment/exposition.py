"""The worker's figures as Prometheus reads them, made when they are asked for: to count costs nothing more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from contracts.metrics.worker import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric as Family

    from contracts.metrics import Metric
    from services.enrichment.metrics import Metrics


class Exposition(Collector):
    """The catalogue with its values, and the figures of the process (CPU, memory, open files) beside it."""

    def __init__(self, counts: Metrics) -> None:
        self._counts = counts
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """All figures, in Prometheus' text format."""
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
        values = self._counts.divided(metric) if metric.labels else {(): self._counts.get(metric)}
        for labels, value in values.items():
            family.add_metric(labels, value)
        return family

    def _histogram(self, metric: Metric) -> HistogramMetricFamily:
        family = HistogramMetricFamily(metric.family, metric.help, labels=metric.labels)
        for labels, found in self._counts.histograms(metric).items():
            family.add_metric(labels, found.cumulative(), found.sum)
        return family
