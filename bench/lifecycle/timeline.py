"""The published snapshots by time: the gaps between them, and whether states have all their events."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from bench.harness.figures import largest_gap
from bench.harness.load import Sent


class Published(NamedTuple):
    """A snapshot: the time of its record, in seconds of the epoch, its device and its state."""

    at: float
    device: str
    state: dict[str, Any]


class Past(NamedTuple):
    """The minimum content of a state: the number of its device's events, and the largest temperature."""

    events: int
    largest: float


def decode(records: Iterable[tuple[int, bytes]]) -> list[Published]:
    """Return the snapshots by their time. Raises ValueError, LookupError."""
    found = [(at / 1000, orjson.loads(value)) for at, value in records]
    return sorted((Published(at, one["device_id"], one["state"]) for at, one in found), key=lambda one: one.at)


def gap_s(published: Iterable[Published], begin: float, end: float) -> float:
    """The longest time without a snapshot, of those between the last one before the begin and the end."""
    times = [one.at for one in published if one.at <= end]
    before = max((at for at in times if at < begin), default=begin)
    return largest_gap([before, *sorted(at for at in times if at >= begin), end])


def past(sent: Iterable[Sent], until: float) -> dict[str, Past]:
    """Return what the states of all devices have of the events that were sent before."""
    found = dict[str, Past]()
    for one in sent:
        if one.at < until:
            known = found.get(one.reading.device, Past(0, float("-inf")))
            found[one.reading.device] = Past(known.events + 1, max(known.largest, one.reading.temperature))
    return found


def lasts(published: Iterable[Published], field: str, until: float) -> dict[str, dict[str, Any]]:
    """Return the last state of each device that has a field, of those before a time."""
    return {one.device: one.state for one in published if one.at < until and field in one.state}


def share(states: Mapping[str, dict[str, Any]], field: str, least: Mapping[str, float]) -> float:
    """The share of devices whose state has at least so much in a field."""
    right: list[bool] = [
        (states.get(device, {}).get(field) or float("-inf")) >= value for device, value in least.items()
    ]
    return sum(right) / len(right)


def exact(states: Mapping[str, dict[str, Any]], field: str, sent: Iterable[Sent]) -> float:
    """The share of devices whose count is that of all their events."""
    counts = defaultdict[str, int](int)
    for one in sent:
        counts[one.reading.device] += 1
    right: list[bool] = [states.get(device, {}).get(field) == count for device, count in counts.items()]
    return sum(right) / len(right)
