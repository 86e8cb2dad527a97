"""Detects that everything fails: then the cause is the set-up and not the records, and dead letters do not help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.enrichment.errors import EverythingFailsError

if TYPE_CHECKING:
    from contracts.planning.request import Request
    from services.enrichment.calls.caller import Outcome
    from services.enrichment.planner import RequestPlanner
    from services.enrichment.settings import EnrichmentSettings


class Alarms:
    """One alarm for decoding, and one for the requests of each API: a wrong key or address fails all of them.

    If nothing has succeeded since the start, a few failures are enough, because each restart would repeat their dead
    letters. An API without a breaker is different: its requests also fail while it is only down.
    """

    def __init__(self, planner: RequestPlanner, settings: EnrichmentSettings) -> None:
        self._planner = planner
        of, share, first = settings.failure_window, settings.failure_rate_threshold, settings.failure_min_count
        self._read = Alarm(of, share, first)
        self._apis = {api: Alarm(of, share, first if policy.breaker else of) for api, policy in planner.apis.items()}

    def decoded(self) -> None:
        """Count a decoded snapshot."""
        self._read.note(failed=False)

    def undecodable(self, detail: str) -> None:
        """Count an undecodable record. Raises EverythingFailsError."""
        if self._read.note(failed=True):
            what = f"records of {self._planner.topic}"
            look = "Check that Stateloop writes that topic, in the same version as the worker"
            raise EverythingFailsError(what, self._read.failed, self._read.seen, detail, look)

    def ended(self, request: Request, outcome: Outcome) -> None:
        """Count the outcome of a request, if it made a call. Raises EverythingFailsError."""
        if request.skipped is not None:
            return
        api = self._planner.api_of[request.enrichment]
        if self._apis[api].note(failed=outcome.status == "failure"):
            last = f"{request.enrichment}: {outcome.reason}"
            look = f"Check the address of {api} in STATELOOP_APIS, what it is called with, and whether it works"
            raise EverythingFailsError(f"requests of {api}", self._apis[api].failed, self._apis[api].seen, last, look)


class Alarm:
    """Counts the failures among the last `of` results. The `first` results are enough if all of them failed."""

    def __init__(self, of: int, share: float, first: int) -> None:
        self._failures = bytearray(of)
        self._share = share
        self._first = min(first, of)
        self._noted = 0
        self.failed = 0
        """The number of failures among the last results."""

    def note(self, *, failed: bool) -> bool:
        """Add a result. Return whether too many of the last ones failed, once there are enough."""
        at = self._noted % len(self._failures)
        self.failed += failed - self._failures[at]
        self._failures[at] = failed
        self._noted += 1
        enough = self._first if self.failed == self._noted else len(self._failures)
        return failed and self._noted >= enough and self.failed >= self._share * self.seen

    @property
    def seen(self) -> int:
        """The number of results that it observes."""
        return min(self._noted, len(self._failures))
