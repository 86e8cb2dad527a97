"""Snapshots as an honest job writes them, to be spoilt by tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bench.harness.load import SensorReading


def honest(readings: Iterable[SensorReading]) -> list[dict[str, Any]]:
    """A snapshot after each reading, computed in another way than the oracle does."""
    seen: dict[str, list[SensorReading]] = {}
    snapshots = []
    for reading in readings:
        before = seen.setdefault(reading.device, [])
        before.append(reading)
        temperatures = [earlier.temperature for earlier in before]
        state = {
            "events": len(before),
            "t_max": max(temperatures),
            "t_avg": sum(temperatures) / len(before),
            "t_last": max(before, key=lambda earlier: earlier.ts).temperature,
            "last_ts": max(earlier.ts for earlier in before)[:23] + "Z",
        }
        snapshots.append({"device_id": reading.device, "state": state})
    return snapshots


def encoded(snapshots: Iterable[object]) -> list[bytes]:
    """As they are in the topic."""
    return [orjson.dumps(snapshot) for snapshot in snapshots]
