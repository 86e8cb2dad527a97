"""The differences of a window from the oracle."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contracts.wire import Snapshot
    from tests.examples.departures.oracle import Expected

PROBABILITIES = (0.5, 0.9, 0.99)
ACCURACY = 100
"""A quantile's rank may be off by 1/100 of the number of values, and by one more, because Spark rounds the rank."""


def differences(expected: Expected, snapshot: Snapshot) -> list[str]:
    """The fields that differ, with both values. Empty when the window is as expected."""
    state: dict[str, Any] = dict(snapshot.state)
    quantiles = state.pop("delays")
    delays = expected.delays
    wanted: dict[str, Any] = {
        "flights": expected.departed,
        "cancelled": expected.cancelled,
        "late": expected.late,
        "total_delay": sum(delays),
        "destinations": _top(expected.destinations),
    }
    if delays:
        wanted |= {"worst_delay": delays[-1], "mean_delay": sum(delays) / len(delays)}
    wrong = [
        f"{name}: expected {wanted.get(name)!r}, found {state.get(name)!r}"
        for name in sorted(wanted.keys() | state.keys())
        if not _same(wanted.get(name), state.get(name))
    ]
    if not _are_quantiles(quantiles, delays):
        wrong.append(f"delays: {quantiles!r} of {delays!r}")
    if snapshot.version != expected.departed + expected.cancelled:
        wrong.append(f"version: {snapshot.version}, of {expected.departed} and {expected.cancelled} events")
    return wrong


def _top(destinations: dict[str, int]) -> list[dict[str, Any]]:
    ranked = sorted(destinations.items(), key=lambda item: (-item[1], item[0]))
    return [{"value": value, "count": count} for value, count in ranked[:3]]


def _same(expected: Any, found: Any) -> bool:
    if isinstance(expected, float) and isinstance(found, float):
        return math.isclose(expected, found, rel_tol=1e-9, abs_tol=1e-9)
    return bool(expected == found)


def _are_quantiles(found: Sequence[float], delays: Sequence[int]) -> bool:
    """Whether each value is one of the delays, and its rank that of the probability within the bound."""
    if not delays:
        return list(found) == []
    return len(found) == len(PROBABILITIES) and all(map(_is_quantile, found, PROBABILITIES, [delays] * len(found)))


def _is_quantile(value: float, probability: float, delays: Sequence[int]) -> bool:
    rank, bound = probability * len(delays), len(delays) / ACCURACY + 1
    first, last = bisect_left(delays, value) + 1, bisect_right(delays, value)
    return first <= last and first <= math.ceil(rank) + bound and last >= rank - bound
