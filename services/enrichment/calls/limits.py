"""The limits of the calls to an API, by its policy: concurrency and rate."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiolimiter import AsyncLimiter

if TYPE_CHECKING:
    from contracts import Policy, RateLimit

BURST = 25
"""One of so many calls of a rate may start early: a smaller burst would leave a large rate unused."""


class Limits:
    """The slots of running calls, and the rate of new ones."""

    def __init__(self, policy: Policy) -> None:
        self.slots = asyncio.Semaphore(policy.concurrency)
        self._rate = None if policy.rate is None else limiter(policy.rate)

    @property
    def has_rate(self) -> bool:
        """Whether the policy has a rate."""
        return self._rate is not None

    @property
    def must_wait(self) -> bool:
        """Whether a call that started now would exceed the rate."""
        return self._rate is not None and not self._rate.has_capacity()

    async def rate(self) -> None:
        """Wait until a call may start."""
        if self._rate is not None:
            await self._rate.acquire()


def limiter(rate: RateLimit) -> AsyncLimiter:
    """A leaky bucket that lets at most `rate.calls` through in any time of `rate.per`.

    A bucket as large as the quota would let twice the quota through in the first period. This one is a small part of
    it, and leaks so much slower that bucket and leak together are the quota.
    """
    bucket = max(1, rate.calls // BURST)
    leaks = rate.calls - bucket + 1
    return AsyncLimiter(bucket, rate.per.total_seconds() * bucket / leaks)
