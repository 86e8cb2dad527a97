"""Measures the query service itself, with few patients."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from bench.coverage.engines import COVERAGE_SERVICE
from bench.coverage.measures import CoverageQueries
from bench.coverage.queries import CoverageLookups, Patient
from bench.harness.plan import Plan, Site

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.broker.embedded import EmbeddedBroker

START = datetime(2026, 1, 1, tzinfo=UTC)
PATIENT = Patient("p", START, [True] * 90 + [False] * 10 + [True] * 3500 + [True] * 3600)


def ignore(what: str, done: float) -> None:
    assert what
    assert 0 <= done <= 1


def test_each_hour_has_its_spans() -> None:
    first, second = PATIENT.snapshots()
    assert first.state == {"count": 3590, "covered": [[0, 90], [100, 3600]]}
    assert second.state == {"count": 3600, "covered": [[0, 3600]]}
    assert (second.first_seen - first.first_seen).total_seconds() == 3600


def interval(kind: str, start: str, end: str) -> dict[str, Any]:
    return {"kind": kind, "from": f"2026-01-01T{start}Z", "to": f"2026-01-01T{end}Z"}


def test_an_answer_must_have_all_intervals() -> None:
    right = [
        interval("data", "00:00:00", "00:01:30"),
        interval("gap", "00:01:30", "00:01:40"),
        interval("data", "00:01:40", "02:00:00"),
    ]
    assert PATIENT.is_answered_by({"intervals": right})
    assert not PATIENT.is_answered_by({"intervals": right[:-1]})
    assert not PATIENT.is_answered_by({"intervals": [*right[:2], interval("data", "00:01:40", "01:59:59")]})
    assert not PATIENT.is_answered_by({"intervals": [interval("data", "00:00:00", "02:00:00")]})


@pytest.mark.kafka
def test_queries_are_measured(broker: EmbeddedBroker, tmp_path: Path) -> None:
    queries = CoverageQueries("queries", patients=5, hours=2, seconds=1)
    lookups = CoverageLookups(queries, Plan((queries,), runs=1), Site(broker.bootstrap, tmp_path, tmp_path))
    result = lookups.measure(COVERAGE_SERVICE, 1, ignore)
    assert result.right, result
    assert result.report is not None
    assert result.report.events > 1
    assert 0 < result.figures["p50_ms"] <= result.figures["p99_ms"]
    assert result.figures["us_per_query"] > 0
