from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from bench.harness.load import readings
from bench.windows.jobs import FLINK_CLOSE, FLINK_EVENT, STATELOOP_EVENT
from bench.windows.oracle import WindowOracle
from contracts import Emit

if TYPE_CHECKING:
    from bench.windows.jobs import WindowJob

ENDS = 1_800_001_800.0
"""Half an hour after a whole one."""
READINGS = list(readings(500, 10, ENDS, 3.5 * 3600 / 500))
BATCH = replace(FLINK_EVENT, emit=Emit.BATCH)


@pytest.fixture
def oracle() -> WindowOracle:
    return WindowOracle(READINGS)


def counted() -> list[dict[str, Any]]:
    """Each event's count, in the order of events."""
    counts, published = Counter[tuple[str, str]](), list[dict[str, Any]]()
    for reading in READINGS:
        window = reading.device, reading.ts[:13]
        counts[window] += 1
        published.append({"key": reading.device, "window_start": f"{window[1]}:00:00Z", "count": counts[window]})
    return published


def last_counts() -> list[dict[str, Any]]:
    return list({(count["key"], count["window_start"]): count for count in counted()}.values())


def closed() -> list[dict[str, Any]]:
    newest = max(str(count["window_start"]) for count in counted())
    return [count for count in last_counts() if count["window_start"] != newest]


def encoded(counts: list[dict[str, Any]]) -> list[bytes]:
    return [orjson.dumps(count) for count in counts]


def test_there_are_several_windows_of_several_events() -> None:
    assert len(last_counts()) == 40
    assert len(closed()) == 30
    assert min(count["count"] for count in closed()) > 2


@pytest.mark.parametrize(
    ("job", "published"), [(FLINK_EVENT, counted()), (BATCH, last_counts()), (FLINK_CLOSE, closed())]
)
def test_the_required_counts_of_each_kind_of_engine(
    oracle: WindowOracle, job: WindowJob, published: list[dict[str, Any]]
) -> None:
    assert oracle.check(encoded(published), job).right
    assert oracle.least(job.emit) == len(published)
    without = oracle.check(encoded(published[:-1]), job)
    assert without.missing == 1
    twice = oracle.check(encoded([*published, published[0]]), job)
    assert (twice.duplicates, twice.missing) == (1, 0)


def test_a_batch_may_publish_counts_in_between(oracle: WindowOracle) -> None:
    assert oracle.check(encoded(counted()), BATCH).right


def test_a_close_may_not(oracle: WindowOracle) -> None:
    assert oracle.check(encoded(counted()), FLINK_CLOSE).wrong == len(counted()) - len(last_counts())


@pytest.mark.parametrize("count", [0, 1_000])
def test_a_count_that_cannot_be_is_wrong(oracle: WindowOracle, count: int) -> None:
    wrong = oracle.check(encoded([*counted(), counted()[0] | {"count": count}]), FLINK_EVENT)
    assert (wrong.wrong, wrong.missing) == (1, 0)
    assert str(count) in str(wrong)


@pytest.mark.parametrize(
    "other",
    [
        {"key": "nobody"},
        {"window_start": "1999-01-01T00:00:00Z"},
        {"window_start": "noon"},
        {"window_start": None},
        {"count": "many"},
        {"count": None},
    ],
)
def test_a_count_of_other_events_is_unknown(oracle: WindowOracle, other: dict[str, Any]) -> None:
    assert oracle.check(encoded([*counted(), counted()[0] | other]), FLINK_EVENT).unknown == 1


def test_broken_json_is_unknown(oracle: WindowOracle) -> None:
    assert oracle.check([b"{", b"[]", b"1"], FLINK_EVENT).unknown == 3


def test_a_snapshot_of_ours_is_read_too(oracle: WindowOracle) -> None:
    snapshots = [
        {"device_id": row["key"], "first_seen": row["window_start"], "version": 1, "state": {"count": row["count"]}}
        for row in counted()
    ]
    assert oracle.check(encoded(snapshots), STATELOOP_EVENT).right
