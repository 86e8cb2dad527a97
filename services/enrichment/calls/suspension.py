"""Suspends an API while (nearly) all of its requests fail: the cause is the set-up, and dead letters do not help."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from contracts.metrics import worker as metrics
from services.enrichment.calls.circuit_breaker import BreakerState, LatestFailure
from services.runtime.worker.alarm import Alarm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contracts.metrics.counts import Counts
    from contracts.planning.request import Request
    from services.enrichment.calls.breaker_report import BreakerReport
    from services.enrichment.calls.caller import Enricher, Outcome
    from services.enrichment.calls.circuit_breaker import CallLater

log = logging.getLogger(__name__)


class FailureLimits(NamedTuple):
    """An API is suspended when this `share` of its last `window` requests failed, or its first `first` ones.

    Every `trial_s` seconds one of its requests is tried.
    """

    window: int
    share: float
    first: int
    trial_s: float


class Suspension:
    """The suspension of one API. A request that fails meanwhile waits, and is tried again in its turn.

    A trial that succeeds ends the suspension. If no request waits any more, because their partitions moved, the next
    ones that come are the trial.
    """

    def __init__(
        self, api: str, limits: FailureLimits, *, later: CallLater, report: BreakerReport, counts: Counts
    ) -> None:
        self._api = api
        self._limits = limits
        self._later = later
        self._report = report
        self._counts = counts
        self._alarm = self._new_alarm()
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._trials = 0
        """The number of trials under way: a slow one may outlast the interval."""
        self._failed: LatestFailure | None = None
        """The failure for which the API is suspended."""
        self._open = asyncio.Event()
        self._open.set()

    @property
    def is_open(self) -> bool:
        """Return whether new requests may start."""
        return self._open.is_set()

    async def wait_until_open(self) -> None:
        """Wait until new requests may start."""
        await self._open.wait()

    async def outcome(self, caller: Enricher, request: Request) -> Outcome:
        """Return the outcome of a request; wait and repeat it while it fails in a suspension."""
        is_trial = self._failed is not None and self.is_open
        while True:
            self._trials += is_trial
            try:
                found = await caller.answer(request)
            finally:
                self._trials -= is_trial
            if not self._must_wait(found, is_trial=is_trial):
                return found
            is_trial = await self._turn()

    def _must_wait(self, outcome: Outcome, *, is_trial: bool) -> bool:
        """Count an outcome, and return whether the request waits for its next turn."""
        failed = outcome.status == "failure"
        if self._failed is None:
            if not self._alarm.note(failed=failed):
                return False
            self._suspend(outcome.reason or "")
        elif failed:
            self._note(outcome.reason or "")
        elif is_trial:
            self._resume()
        return failed

    async def _turn(self) -> bool:
        """Wait. Return True for a trial, and False after the suspension."""
        waiting: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        return await waiting

    def _suspend(self, reason: str) -> None:
        facts = {"api": self._api, "failed": self._alarm.failed, "of": self._alarm.seen, "why": reason}
        look = f"check the address of {self._api} in STATELOOP_APIS, what it is called with, and whether it works"
        log.error("the requests of an API fail, and wait: %s", look, extra={"facts": facts})
        self._note(reason)
        self._later(self._limits.trial_s, self._try)

    def _note(self, reason: str) -> None:
        """Close the gate, and report the API as one that is down, with the reason."""
        former = self._failed
        self._failed = LatestFailure(reason, former.count + 1 if former and former.reason == reason else 1)
        self._open.clear()
        self._report.note(BreakerState.OPEN, self._failed)

    def _try(self) -> None:
        """Let one request try the API, and come again."""
        if self._failed is None:
            return
        self._later(self._limits.trial_s, self._try)
        while self._waiting:
            if not (waiting := self._waiting.popleft()).done():
                self._counts.add(metrics.TRIALS, self._api)
                waiting.set_result(True)
                return
        if not self._trials:
            self._open.set()

    def _resume(self) -> None:
        self._failed = None
        self._alarm = self._new_alarm()
        self._alarm.note(failed=False)
        self._report.note(BreakerState.CLOSED, None)
        self._open.set()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(False)
        self._waiting.clear()

    def _new_alarm(self) -> Alarm:
        return Alarm(self._limits.window, self._limits.share, self._limits.first)


class SuspendableCaller:
    """Answers requests by another caller, within the suspensions of their APIs. Implements `Enricher`."""

    def __init__(self, caller: Enricher, suspensions: Mapping[str, Suspension]) -> None:
        self._caller = caller
        self._suspensions = suspensions
        """By the name of the enrichment, or of the alerts."""

    async def answer(self, request: Request) -> Outcome:
        """See `Enricher.answer`."""
        return await self._suspensions[request.enrichment].outcome(self._caller, request)
