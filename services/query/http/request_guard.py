"""Lets a request in: asked under a name of its own, with a token that is known, and within its holder's rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web
from cachetools import LRUCache

from contracts.metrics import query as metrics
from services.query.http.allowed_hosts import AllowedHosts
from services.query.lookup.authentication import ANONYMOUS, PEER
from services.query.lookup.problem import Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.query.dependencies import Parts
    from services.query.lookup.authentication import Authenticator, Principal

REMEMBERED = 10_000
"""How many holders and addresses are told apart by their rate; the one that came least lately is forgotten."""
OTHER_HOST = (
    "Without tokens ask it as localhost or 127.0.0.1: a page elsewhere could let its own name mean this machine. Other "
    "hosts and pages can be named in STATELOOP_ORIGINS; or set STATELOOP_TOKENS"
)
BURST_S = 1.0
"""How much of the rate may come at once."""
CHARGED = web.RequestKey("charged", int)
"""How many keys a request was charged for; one, when it was let in."""


class RateMeter:
    """How much of its rate one holder, or one address, has had. It may be exceeded by one request, not by the next."""

    def __init__(self, who: str, each_s: float, clock: Callable[[], float]) -> None:
        self.who = who
        self._each_s = each_s
        self._clock = clock
        self._free_at = 0.0

    def take(self, keys: int) -> bool:
        """Whether so many keys may be asked for now; if so, they are taken from the rate."""
        if not self._each_s:
            return True
        now = self._clock()
        if self._free_at > now:
            return False
        self._free_at = max(self._free_at, now - BURST_S) + keys * self._each_s
        return True

    def charge(self, keys: int) -> None:
        """Take so many more, for a request that was let in; less than none are given back."""
        self._free_at += keys * self._each_s

    def again_s(self) -> int:
        """After how many seconds to ask again."""
        return max(1, round(self._free_at - self._clock()))


METER = web.RequestKey("meter", RateMeter)
"""What counts the keys of who asks, of a request below /v1/."""


class RequestGuard:
    """Who is let in. The rate is that of a token, or of an address where no token is needed; instances have none."""

    def __init__(self, parts: Parts, access: Authenticator) -> None:
        self._access = access
        self._counts = parts.counts
        self._clock = parts.clock
        self.hosts = AllowedHosts(parts.settings)
        self._each_s = 1 / parts.settings.rate if parts.settings.rate else 0.0
        self._meters: LRUCache[tuple[bool, str], RateMeter] = LRUCache(REMEMBERED)

    def holder(self, authorization: str | None) -> Principal | None:
        """Whose the token is; None: nobody's."""
        return self._access.authenticate(authorization)

    def check_host(self, request: web.Request) -> None:
        """Refuse who asks under a name that is not this instance's. Raises ProblemError (403)."""
        if not self.hosts.answers(request):
            self._counts.add(metrics.REFUSED, "host")
            raise ProblemError(Problem("other_host", OTHER_HOST))

    def admitted(self, authorization: str | None, address: str) -> Principal:
        """Who asks. One key is taken from the rate. Raises ProblemError: 401 or 429."""
        if (who := self.holder(authorization)) is None:
            self._counts.add(metrics.REFUSED, "token")
            problem = Problem("no_token", "Send one that is in the file of tokens, as Authorization: Bearer …")
            raise ProblemError(problem, (("WWW-Authenticate", "Bearer"),))
        meter = self.meter(who, address)
        if not meter.take(1):
            self._counts.add(metrics.REFUSED, "rate")
            detail = f"{meter.who} asks for more than its rate"
            raise ProblemError(Problem("too_many", detail, retry_after=meter.again_s()))
        return who

    def charge(self, request: web.Request, keys: int) -> None:
        """Take from the rate all that the request asks for: once, however often it is tried."""
        if (more := keys - request.get(CHARGED, 1)) > 0:
            request[METER].charge(more)
            request[CHARGED] = keys

    def meter(self, holder: Principal, address: str) -> RateMeter:
        """What counts the holder's keys, or the address's where there is no token."""
        anonymous = holder is ANONYMOUS
        kind = anonymous, address if anonymous else holder.name
        if (found := self._meters.get(kind)) is None:
            each_s = 0.0 if holder is PEER else self._each_s
            found = self._meters[kind] = RateMeter(kind[1], each_s, self._clock)
        return found
