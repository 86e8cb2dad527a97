"""Admits requests: sent to a host name of this instance, with a valid token, and within the rate of its principal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.metrics import query as metrics
from services.query.http.allowed_hosts import AllowedHosts
from services.query.lookup.problems import Problem, ProblemError
from services.query.lookup.rate_limit import RateMeters

if TYPE_CHECKING:
    from aiohttp import web

    from services.query.dependencies import Dependencies
    from services.query.lookup.authentication import Authenticator, Principal
    from services.query.lookup.rate_limit import RateMeter

OTHER_HOST = (
    "Without tokens the service answers as localhost or 127.0.0.1 only: a page of another site could let its own name "
    "resolve to this machine. Name other hosts and pages in STATELOOP_ORIGINS, or set STATELOOP_TOKENS"
)


class RequestGuard:
    """Checks host, token and rate. Other instances have no rate limit."""

    def __init__(self, dependencies: Dependencies, authenticator: Authenticator) -> None:
        self._authenticator = authenticator
        self._counts = dependencies.counts
        self._meters = RateMeters(dependencies.settings.rate, dependencies.clock)
        self.hosts = AllowedHosts(dependencies.settings)

    def authenticate(self, authorization: str | None) -> Principal | None:
        """The principal of an Authorization header; None for an unknown token."""
        return self._authenticator.authenticate(authorization)

    def check_host(self, request: web.Request) -> None:
        """Raises ProblemError (403) if the request names another host or comes from another origin."""
        if not self.hosts.allow_request(request):
            self._counts.add(metrics.REFUSED, "host")
            raise ProblemError(Problem("other_host", OTHER_HOST))

    def admit(self, authorization: str | None, address: str) -> tuple[Principal, RateMeter]:
        """The principal and its meter, charged for one key. Raises ProblemError (401, 429)."""
        if (principal := self.authenticate(authorization)) is None:
            self._counts.add(metrics.REFUSED, "token")
            problem = Problem("no_token", "Send a token of the token file, as Authorization: Bearer …")
            raise ProblemError(problem, (("WWW-Authenticate", "Bearer"),))
        meter = self.meter(principal, address)
        if not meter.take(1):
            self._counts.add(metrics.REFUSED, "rate")
            detail = f"{meter.name} exceeds its rate"
            raise ProblemError(Problem("too_many", detail, retry_after=meter.retry_after_s()))
        return principal, meter

    def meter(self, principal: Principal, address: str) -> RateMeter:
        """The rate meter of the principal, or of the address if it is anonymous."""
        return self._meters.of(principal, address)
