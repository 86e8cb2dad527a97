from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from bench.harness.load import readings
from bench.harness.results import OracleReport
from bench.yardstick.jobs import EXACT, FLINK_STATE, STATELOOP
from bench.yardstick.oracle import Oracle
from tests.bench.yardstick.snapshots import encoded, honest

EVENTS, DEVICES = 500, 20
LOAD = list(readings(EVENTS, DEVICES, end=1_800_000_000.0))


def judge(snapshots: list[dict[str, Any]], *, in_order: bool = True) -> OracleReport:
    return Oracle(LOAD).check(encoded(snapshots), dataclasses.replace(STATELOOP, in_order=in_order))


def test_one_correct_snapshot_for_each_event_is_right() -> None:
    report = judge(honest(LOAD))
    assert report.right
    assert (report.events, report.snapshots) == (EVENTS, EVENTS)


def test_the_order_of_snapshots_does_not_matter() -> None:
    assert judge(honest(LOAD)[::-1]).right


def test_the_state_may_be_at_the_top() -> None:
    flat = [{"device_id": snapshot["device_id"], **snapshot["state"]} for snapshot in honest(LOAD)]
    assert Oracle(LOAD).check(encoded(flat), FLINK_STATE).right


def test_a_missing_snapshot() -> None:
    report = judge(honest(LOAD)[1:])
    assert (report.missing, report.right) == (1, False)


def test_no_snapshots_at_all() -> None:
    assert judge([]).missing == EVENTS


def test_a_snapshot_given_twice() -> None:
    snapshots = honest(LOAD)
    report = judge([*snapshots, snapshots[7]])
    assert (report.duplicates, report.missing, report.right) == (1, 0, False)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [("t_max", 99.0), ("t_avg", 20.00001), ("t_last", None), ("last_ts", "2027-01-15T08:00:00.001Z"), ("last_ts", 5)],
)
@pytest.mark.parametrize("index", [0, -1])
def test_a_wrong_field(field: str, wrong: object, index: int) -> None:
    snapshots = honest(LOAD)
    snapshots[index]["state"][field] = wrong
    report = judge(snapshots)
    assert (report.wrong, report.right) == (1, False)
    assert report.example is not None
    assert report.example.startswith(field)


def test_a_lost_field() -> None:
    snapshots = honest(LOAD)
    del snapshots[3]["state"]["t_avg"]
    assert judge(snapshots).wrong == 1


def test_a_wrong_count_is_a_missing_and_an_unknown_or_repeated_one() -> None:
    snapshots = honest(LOAD)
    snapshots[-1]["state"]["events"] = EVENTS
    report = judge(snapshots)
    assert (report.missing, report.unknown, report.right) == (1, 1, False)


@pytest.mark.parametrize(
    "value", [b"", b"{", b"null", b"[]", b'{"device_id":"d1"}', b'{"device_id":"d1","state":{"events":"1"}}']
)
def test_an_invalid_snapshot_is_unknown(value: bytes) -> None:
    report = Oracle(LOAD).check([*encoded(honest(LOAD)), value], STATELOOP)
    assert (report.unknown, report.missing, report.right) == (1, 0, False)


def test_a_snapshot_of_an_unknown_device() -> None:
    stranger = honest(LOAD)[0] | {"device_id": "stranger"}
    assert judge([*honest(LOAD), stranger]).unknown == 1


def test_of_a_job_that_reorders_events_the_last_snapshot_of_each_device_counts() -> None:
    snapshots = honest(LOAD)
    snapshots[0]["state"]["t_max"] = 99.0
    assert judge(snapshots, in_order=False).right
    snapshots[-1]["state"]["t_max"] = 99.0
    assert judge(snapshots, in_order=False).wrong == 1
    assert not EXACT.in_order


def test_a_report_counts_the_errors() -> None:
    assert str(OracleReport(events=3)) == "each of 3 events gave one correct snapshot"
    assert "2 missing" in str(OracleReport(events=3, missing=2))
