"""Notices when everything fails: then it is not the records that are to blame, and dead letters do not help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.enrichment.errors import EverythingFailsError

if TYPE_CHECKING:
    from contracts import Application
    from contracts.planning.request import Request
    from services.enrichment.calls.caller import Outcome
    from services.enrichment.settings import EnrichmentSettings


class Alarms:
    """One for what is read, and one for the requests of each API: a wrong key or address fails all of one API.

    Where nothing succeeded since the start a few are enough, or each restart would write as many dead letters anew. Not
    so of an API without a breaker, whose requests fail while it is merely down.
    """

    def __init__(self, application: Application, settings: EnrichmentSettings) -> None:
        self._application = application
        of, share, first = settings.alarm_of, settings.alarm_share, settings.alarm_first
        self._read = Alarm(of, share, first)
        self._apis = {
            api: Alarm(of, share, first if policy.breaker else of) for api, policy in application.apis.items()
        }

    def decoded(self) -> None:
        """Note a snapshot that was decoded."""
        self._read.note(failed=False)

    def undecodable(self, detail: str) -> None:
        """Note a record that was not. Raises EverythingFailsError."""
        if self._read.note(failed=True):
            what = f"records of {self._application.topics.snapshots}"
            look = "Check that the job writes that topic and is of the same version as the worker"
            raise EverythingFailsError(what, self._read.failed, self._read.seen, detail, look)

    def ended(self, request: Request, outcome: Outcome) -> None:
        """Note how a request ended, if it called. Raises EverythingFailsError."""
        if request.skipped is not None:
            return
        api = self._application.by_name[request.enrichment].api
        if self._apis[api].note(failed=outcome.status == "failure"):
            last = f"{request.enrichment}: {outcome.reason}"
            look = f"Check the address of {api} in STATELOOP_APIS, what it is called with, and whether it works"
            raise EverythingFailsError(f"requests of {api}", self._apis[api].failed, self._apis[api].seen, last, look)


class Alarm:
    """Remembers how the last `of` things ended. The `first` are enough where all of them failed."""

    def __init__(self, of: int, share: float, first: int) -> None:
        self._ends = bytearray(of)
        self._share = share
        self._first = min(first, of)
        self._noted = 0
        self.failed = 0
        """How many of the last ones failed."""

    def note(self, *, failed: bool) -> bool:
        """Note one more. Gives whether too many of the last ones failed; not before there were that many."""
        at = self._noted % len(self._ends)
        self.failed += failed - self._ends[at]
        self._ends[at] = failed
        self._noted += 1
        enough = self._first if self.failed == self._noted else len(self._ends)
        return failed and self._noted >= enough and self.failed >= self._share * self.seen

    @property
    def seen(self) -> int:
        """How many it looks at."""
        return min(self._noted, len(self._ends))
