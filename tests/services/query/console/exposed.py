"""Metrics as processes of the loop export them, from the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client import Metric as Family

    from contracts.metrics import Metric

Exposed = dict["Metric", "dict[tuple[str, ...], float]"]
Seconds = dict["Metric", "dict[str, list[float]]"]


class _Collector(Collector):
    def __init__(self, values: Exposed, seconds: Seconds) -> None:
        self._values = values
        self._seconds = seconds

    @override
    def collect(self) -> Iterator[Family]:
        for metric, values in self._values.items():
            kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = kind(metric.family, metric.help, labels=metric.labels)
            for labels, value in values.items():
                family.add_metric(labels, value)
            yield family
        for metric, by_label in self._seconds.items():
            yield _histogram(metric, by_label)


def exposed(values: Exposed, seconds: Seconds | None = None) -> str:
    """Return the text of /metrics with these values. `seconds` has each value of a histogram, by its label."""
    registry = CollectorRegistry()
    registry.register(_Collector(values, seconds or {}))
    return generate_latest(registry).decode()


def _histogram(metric: Metric, by_label: Mapping[str, list[float]]) -> HistogramMetricFamily:
    family = HistogramMetricFamily(metric.family, metric.help, labels=metric.labels)
    for label, values in by_label.items():
        bounds = (*metric.buckets, float("inf"))
        counts = [
            ("+Inf" if bound == float("inf") else str(bound), float(sum(value <= bound for value in values)))
            for bound in bounds
        ]
        family.add_metric((label,), counts, sum(values))
    return family
