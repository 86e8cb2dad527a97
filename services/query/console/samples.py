"""The samples of all targets as one table, and quantiles of their histograms."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from contracts.metrics import Metric

Key = tuple[str, ...]
"""The values of the labels by which samples are summed."""
MOST = 20_000
"""The limit of samples of one target; workers and jobs have fewer."""
PARTS = {"enrichment": "worker"}
"""The part of the catalogue whose metrics are those of a kind of target; the others have the name of the kind."""


class Sample(NamedTuple):
    """A sample of a target. Its label `url` has the address of the target."""

    name: str
    labels: Mapping[str, str]
    value: float


def parse_samples(text: str, kind: str, url: str) -> tuple[Sample, ...]:
    """Parse the text of a target in Prometheus' format, up to 20,000 samples. Raises ValueError for invalid text."""
    return tuple(islice(_parsed(text, f"stateloop_{PARTS.get(kind, kind)}_", url), MOST))


def _parsed(text: str, prefix: str, url: str) -> Iterator[Sample]:
    for family in text_string_to_metric_families(text):
        if family.name.startswith(prefix):
            for sample in family.samples:
                if math.isfinite(sample.value):
                    yield Sample(sample.name, {**sample.labels, "url": url}, sample.value)


class Samples:
    """The samples of all targets at one time, by the metrics of the catalogue: of a histogram, its buckets."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._by_name: dict[str, list[Sample]] = defaultdict(list)
        for sample in samples:
            self._by_name[sample.name].append(sample)

    def values(self, metric: Metric, **labels: str) -> list[float]:
        """Return the values of the samples with these labels."""
        return [sample.value for sample in self._select(metric, labels)]

    def sums(self, metric: Metric, *by: str, **labels: str) -> dict[Key, float]:
        """Return the sums of the samples with these labels, for each value of the labels `by`."""
        sums: dict[Key, float] = defaultdict(float)
        for sample in self._select(metric, labels):
            sums[tuple(sample.labels.get(name, "") for name in by)] += sample.value
        return dict(sums)

    def total(self, metric: Metric, **labels: str) -> float | None:
        """Return the sum of the samples with these labels; None without any."""
        return self.sums(metric, **labels).get(())

    def _select(self, metric: Metric, labels: Mapping[str, str]) -> Iterator[Sample]:
        name = f"{metric.family}_bucket" if metric.kind == "histogram" else metric.exported
        return (sample for sample in self._by_name.get(name, ()) if labels.items() <= sample.labels.items())


def quantile(share: float, buckets: Mapping[float, float]) -> float | None:
    """The value that this share is not above, taken as evenly spread within its bucket; None without values.

    `buckets` has the number of values not above each bound. Beyond the last finite bound, it is that bound.
    """
    bounds = sorted(buckets)
    if not bounds or buckets[bounds[-1]] <= 0:
        return None
    wanted = share * buckets[bounds[-1]]
    low = below = 0.0
    for bound in bounds:
        if buckets[bound] >= wanted:
            if math.isinf(bound):
                return low
            inside = buckets[bound] - below
            return low + (bound - low) * ((wanted - below) / inside if inside else 1.0)
        low, below = bound, buckets[bound]
    return low
