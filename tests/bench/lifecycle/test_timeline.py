from __future__ import annotations

import orjson
import pytest

from bench.harness.load import SensorReading, Sent
from bench.lifecycle.timeline import Past, Published, decode, exact, gap_s, lasts, past, share


def snapshot(at: float, device: str, **state: float) -> Published:
    return Published(at, device, dict(state))


def sent(at: float, device: str, temperature: float) -> Sent:
    return Sent(SensorReading(device, 1, "", "", temperature), at, at)


def test_snapshots_are_in_the_order_of_their_times() -> None:
    values = [(at, orjson.dumps({"device_id": "d", "state": {"events": at}})) for at in (3_000, 1_000)]
    assert decode(values) == [snapshot(1.0, "d", events=1_000), snapshot(3.0, "d", events=3_000)]


@pytest.mark.parametrize(("begin", "end", "gap"), [(0.5, 9.0, 5.0), (2.5, 6.5, 4.5), (1.5, 2.0, 1.0)])
def test_a_gap_counts_whole_if_a_step_lies_within_it(begin: float, end: float, gap: float) -> None:
    assert gap_s([snapshot(at, "d") for at in (1.0, 2.0, 7.0, 12.0)], begin, end) == gap


def test_a_state_has_its_past_if_it_counts_all_events_before() -> None:
    load = [sent(1, "a", 5), sent(2, "a", 7), sent(3, "b", 1), sent(9, "a", 99)]
    assert past(load, 5) == {"a": Past(2, 7), "b": Past(1, 1)}
    published = [snapshot(6, "a", readings=2), snapshot(7, "a", readings=3), snapshot(8, "a", readings=9)]
    states = lasts([*published, snapshot(7, "b", events=1)], "readings", 8)
    assert states == {"a": {"readings": 3}}
    assert share(states, "readings", {"a": 3, "b": 1}) == 0.5
    assert share(states, "readings", {"a": 4, "b": 1}) == 0


def test_a_count_is_exact_or_it_is_not() -> None:
    load = [sent(1, "a", 5), sent(2, "a", 7), sent(3, "b", 1)]
    assert exact({"a": {"events": 2}, "b": {"events": 2}}, "events", load) == 0.5
