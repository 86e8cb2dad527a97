"""Rates and latencies over a sliding window: pure, the time (in seconds, of any monotonic clock) is passed in."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

MOST_KEPT = 20_000


class Rate:
    """How many per second, over the last `window_s` seconds; over fewer in the beginning."""

    def __init__(self, window_s: float, now: float) -> None:
        self._window_s = window_s
        self._begin = now
        self._counts: deque[tuple[float, int]] = deque()
        self.total = 0

    def add(self, now: float, count: int = 1) -> None:
        """Count."""
        self.total += count
        self._counts.append((now, count))
        self._forget(now)

    def per_second(self, now: float) -> float:
        """The rate now."""
        self._forget(now)
        elapsed = min(self._window_s, max(now - self._begin, 1.0))
        return sum(count for _, count in self._counts) / elapsed

    def _forget(self, now: float) -> None:
        while self._counts and self._counts[0][0] <= now - self._window_s:
            self._counts.popleft()


@dataclass(frozen=True)
class Quantiles:
    """Of the latencies in the window, in seconds, and how many there were."""

    count: int
    p50: float
    p95: float


class Latencies:
    """The latencies of the last `window_s` seconds; the latest 20,000 of them at the most."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._kept: deque[tuple[float, float]] = deque(maxlen=MOST_KEPT)

    def add(self, now: float, latency: float) -> None:
        """Note one."""
        self._kept.append((now, latency))

    def quantiles(self, now: float) -> Quantiles | None:
        """The figures now; None when there was none."""
        while self._kept and self._kept[0][0] <= now - self._window_s:
            self._kept.popleft()
        if not self._kept:
            return None
        ordered = sorted(latency for _, latency in self._kept)
        return Quantiles(len(ordered), nearest_rank(ordered, 0.5), nearest_rank(ordered, 0.95))


def nearest_rank(ordered: list[float], probability: float) -> float:
    """The smallest value that is not below this share of all values."""
    return ordered[max(0, math.ceil(probability * len(ordered)) - 1)]
