"""Reports the circuit breaker of an API in metrics and log, with the reason of its failures."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from contracts.metrics import worker as metrics
from services.enrichment.calls.circuit_breaker import BreakerState

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from contracts.metrics.counts import Counts
    from services.enrichment.calls.circuit_breaker import LatestFailure

log = logging.getLogger(__name__)

LONGEST = 200
"""The maximum characters of a reason."""


class BreakerReport:
    """The report of one API. It logs the start of an outage, each new reason, and the end."""

    def __init__(self, api: str, counts: Counts, now: Callable[[], datetime]) -> None:
        self._api = api
        self._counts = counts
        self._now = now
        self._failure: LatestFailure | None = None
        self._logged: str | None = None
        """The reason that was logged last; None while the API is up."""

    def note(self, state: BreakerState, failure: LatestFailure | None) -> None:
        """Report the state, and the latest failure since the breaker closed."""
        self._counts.set(metrics.BREAKER, state, self._api)
        if failure is not self._failure:
            self._failure = failure
            self._show(failure)
        if state is BreakerState.CLOSED:
            if self._logged is not None:
                log.info("an API is back", extra={"facts": {"api": self._api}})
            self._logged = None
        elif state is BreakerState.OPEN:
            self._log()

    def _show(self, failure: LatestFailure | None) -> None:
        """Set the metrics of the latest reason, and clear the others."""
        self._counts.clear(metrics.BREAKER_FAILURES, self._api)
        self._counts.clear(metrics.BREAKER_FAILED_AT, self._api)
        if failure is not None:
            self._counts.set(metrics.BREAKER_FAILURES, failure.count, self._api, failure.reason[:LONGEST])
            self._counts.set(metrics.BREAKER_FAILED_AT, self._now().timestamp(), self._api)

    def _log(self) -> None:
        reason, count = (self._failure.reason, self._failure.count) if self._failure else ("", 0)
        if reason == self._logged:
            return
        facts = {"api": self._api, "why": reason, "failures": count}
        words = (
            "an API counts as down: its requests wait" if self._logged is None else "an API is down for another reason"
        )
        log.warning(words, extra={"facts": facts})
        self._logged = reason
