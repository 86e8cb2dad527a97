"""Metrics and log show the latest failure of a breaker, not the one that opened it."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from contracts.metrics import worker as metrics
from contracts.metrics.counts import Counts
from services.enrichment.calls.breaker_report import BreakerReport
from services.enrichment.calls.circuit_breaker import BreakerState, LatestFailure
from tests.services.enrichment.calls.time import EPOCH

if TYPE_CHECKING:
    import pytest


class Reported:
    """A report of one API, and the time."""

    def __init__(self) -> None:
        self.counts = Counts(metrics.CATALOGUE)
        self.now = EPOCH
        self._report = BreakerReport("registry", self.counts, lambda: self.now)

    def note(self, state: BreakerState, failure: LatestFailure | None = None, after_s: int = 1) -> None:
        self.now += timedelta(seconds=after_s)
        self._report.note(state, failure)

    @property
    def metrics_of(self) -> tuple[dict[tuple[str, ...], float], float]:
        at = self.counts.get(metrics.BREAKER_FAILED_AT, "registry")
        return self.counts.divided(metrics.BREAKER_FAILURES), at - EPOCH.timestamp() if at else 0.0


def test_the_figures_have_the_latest_reason_alone_with_its_count_and_time() -> None:
    report = Reported()
    report.note(BreakerState.CLOSED)
    assert report.metrics_of == ({}, 0)
    refused = LatestFailure("refused", 5)
    report.note(BreakerState.OPEN, refused)
    report.note(BreakerState.HALF_OPEN, refused)
    assert report.metrics_of == ({("registry", "refused"): 5}, 2), "its time is that of the failure, not of the turn"
    report.note(BreakerState.HALF_OPEN, LatestFailure("not JSON", 1))
    assert report.metrics_of == ({("registry", "not JSON"): 1}, 4)
    report.note(BreakerState.CLOSED)
    assert report.metrics_of == ({}, 0)


def test_the_log_has_each_new_reason_once(caplog: pytest.LogCaptureFixture) -> None:
    report = Reported()
    with caplog.at_level(logging.INFO):
        for reason in ("refused", "refused", "not JSON", "not JSON", "refused"):
            failure = LatestFailure(reason, 1)
            for state in (BreakerState.HALF_OPEN, BreakerState.OPEN):
                report.note(state, failure)
        report.note(BreakerState.CLOSED)
    logged: list[Any] = [getattr(record, "facts", {}).get("why") for record in caplog.records]
    assert logged == ["refused", "not JSON", "refused", None]


def test_a_long_reason_is_cut() -> None:
    report = Reported()
    report.note(BreakerState.OPEN, LatestFailure("x" * 5000, 1))
    assert {len(reason) for _, reason in report.metrics_of[0]} == {200}
