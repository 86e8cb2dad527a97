"""From times to figures."""

import math
from collections.abc import Sequence
from itertools import pairwise

Figures = dict[str, float]
"""By name, with the unit at its end."""

QUANTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "p999_ms": 0.999, "max_ms": 1.0}


def percentile(ordered: Sequence[float], fraction: float) -> float:
    """The value below which this fraction of the values lies; the largest for 1. NaN if there are none."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * fraction))] if ordered else math.nan


def percentiles(seconds: Sequence[float]) -> Figures:
    """The quantiles of latencies, in milliseconds."""
    ordered = sorted(seconds)
    return {name: 1000 * percentile(ordered, fraction) for name, fraction in QUANTILES.items()}


def largest_gap(ordered: Sequence[float]) -> float:
    """The longest time in which nothing came, in the unit of the times. NaN for less than two."""
    return max((after - before for before, after in pairwise(ordered)), default=math.nan)


def rate(ordered: Sequence[float], skipped: int) -> float:
    """Records per second from the last skipped one to the last; times in seconds."""
    took = ordered[-1] - ordered[skipped - 1]
    return (len(ordered) - skipped) / took if took > 0 else math.inf


def median(values: Sequence[float]) -> float:
    """The middle one; of an even number, the mean of the two in the middle. NaN if there are none."""
    ordered, middle = sorted(values), len(values) // 2
    if not ordered:
        return math.nan
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def within(times: Sequence[float], begin: float, end: float) -> int:
    """Return how many of the times fall into [begin, end)."""
    return sum(begin <= time < end for time in times)
