"""Quantiles of a histogram, as Prometheus estimates them: pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


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
