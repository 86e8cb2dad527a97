"""Parses Prometheus' text format into samples."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contracts.metrics import Metric

Labels = frozenset[tuple[str, str]]
Values = dict[Labels, float]

MOST = 20_000
"""The limit of samples of one target; workers and jobs have fewer."""
OURS = "stateloop_"


class Samples:
    """The samples of one target at one time, by the metrics of the catalogue."""

    def __init__(self, values: Mapping[str, Values]) -> None:
        self._values = values

    def of(self, application: str) -> Samples:
        """Return the samples of one application: those with its label, and those without a label."""
        mine = {
            name: {labels: value for labels, value in values.items() if _application(labels) in {None, application}}
            for name, values in self._values.items()
        }
        return Samples(mine)

    def total(self, metric: Metric) -> float | None:
        """Return the sum over all labels; None without samples."""
        found = self._values.get(metric.exported)
        return sum(found.values()) if found else None

    def divided(self, metric: Metric, *labels: str) -> dict[tuple[str, ...], float]:
        """Return the values by these labels, summed over the others."""
        return _by(self._values.get(metric.exported, {}), labels)

    def smallest(self, metric: Metric) -> float | None:
        """Return the smallest over all labels; None without samples."""
        return min(self._values.get(metric.exported, {}).values(), default=None)

    def largest(self, metric: Metric, label: str, value: str) -> float:
        """Return the largest of the samples with this value of a label; 0 without any."""
        found = self._values.get(metric.exported, {})
        return max((each for labels, each in found.items() if (label, value) in labels), default=0.0)

    def buckets(self, metric: Metric, label: str) -> dict[tuple[str, ...], float]:
        """Return a histogram by a label and a bound: the number of values that are not above it."""
        return _by(self._values.get(f"{metric.family}_bucket", {}), (label, "le"))


def parse_samples(text: str) -> Samples:
    """Parse the text, up to 20,000 samples of Stateloop. Raises ValueError for invalid text."""
    values: dict[str, Values] = defaultdict(dict)
    for name, labels, value in islice(_ours(text), MOST):
        values[name][labels] = value
    return Samples(values)


def _ours(text: str) -> Iterator[tuple[str, Labels, float]]:
    for family in text_string_to_metric_families(text):
        if family.name.startswith(OURS):
            for sample in family.samples:
                if math.isfinite(sample.value):
                    yield sample.name, frozenset(sample.labels.items()), sample.value


def _application(labels: Labels) -> str | None:
    return next((value for name, value in labels if name == "application"), None)


def _by(values: Values, labels: tuple[str, ...]) -> dict[tuple[str, ...], float]:
    found: dict[tuple[str, ...], float] = defaultdict(float)
    for pairs, value in values.items():
        by_name = dict(pairs)
        found[tuple(by_name.get(label, "") for label in labels)] += value
    return dict(found)
