"""How often and how many at once: what an API may be asked, by its policy."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiolimiter import AsyncLimiter

if TYPE_CHECKING:
    from contracts import Policy, Rate

BURST = 25
"""Of so many calls of a rate one may come early: a smaller burst would leave a large rate unused."""


class Limits:
    """The places for calls under way, and the rate at which calls begin."""

    def __init__(self, policy: Policy) -> None:
        self.places = asyncio.Semaphore(policy.concurrency)
        self._rate = None if policy.rate is None else limiter(policy.rate)

    @property
    def has_rate(self) -> bool:
        """Whether there is a rate to keep to."""
        return self._rate is not None

    @property
    def must_wait(self) -> bool:
        """Whether a call that began now would be over the rate."""
        return self._rate is not None and not self._rate.has_capacity()

    async def rate(self) -> None:
        """Wait until a call may begin."""
        if self._rate is not None:
            await self._rate.acquire()


def limiter(rate: Rate) -> AsyncLimiter:
    """A leaky bucket that lets at most `rate.calls` through in any time of `rate.per`.

    A bucket as large as the quota would let twice the quota through in the first period. This one is a small part of
    it, and leaks so much slower that bucket and leak together are the quota.
    """
    bucket = max(1, rate.calls // BURST)
    leaks = rate.calls - bucket + 1
    return AsyncLimiter(bucket, rate.per.total_seconds() * bucket / leaks)
