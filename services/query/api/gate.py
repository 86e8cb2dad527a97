"""Lets a request in: its token must be known, and its holder within the rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachetools import LRUCache

from contracts.metrics import query as metrics
from services.query.api.access import ANYBODY, PEER
from services.query.api.problems import Problem, ProblemError

if TYPE_CHECKING:
    from services.query.api.access import Access, Holder
    from services.query.parts import Parts

REMEMBERED = 10_000
"""How many holders or addresses are told apart by their rate; the one that asked least lately is forgotten."""
BURST_S = 1.0
"""How much of the rate may come at once."""


class Gate:
    """Who is let in. The rate is that of a token, or of an address where no token is needed."""

    def __init__(self, parts: Parts, access: Access) -> None:
        self._access = access
        self._counts = parts.counts
        self._clock = parts.clock
        self._each_s = 1 / parts.settings.rate if parts.settings.rate else 0.0
        self._free_at: LRUCache[str, float] = LRUCache(REMEMBERED)

    def admitted(self, authorization: str | None, address: str, keys: int = 1) -> Holder:
        """Who asks. Raises ProblemError: 401 or 429."""
        holder = self._access.holder(authorization)
        if holder is None:
            self._counts.add(metrics.REFUSED, "token")
            problem = Problem("no_token", "Send one that is in the file of tokens, as Authorization: Bearer …")
            raise ProblemError(problem, (("WWW-Authenticate", "Bearer"),))
        if holder is not PEER:  # the client's rate was looked at where it asked
            self.spend(address if holder is ANYBODY else holder.name, keys)
        return holder

    def spend(self, who: str, keys: int) -> None:
        """Take so many keys from the rate, which may so be exceeded once, not again. Raises ProblemError."""
        if not self._each_s:
            return
        now = self._clock()
        free_at = max(self._free_at.get(who, 0.0), now - BURST_S)
        if free_at > now:
            self._counts.add(metrics.REFUSED, "rate")
            again = max(1, round(free_at - now))
            raise ProblemError(Problem("too_many", f"{who} asks for more than its rate", retry_after=again))
        self._free_at[who] = free_at + keys * self._each_s
