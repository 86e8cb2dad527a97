"""The clocks and the randomness of a process. Parts receive them as arguments, so that a test can replace them."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


def loop_time() -> float:
    """Return the time of the running event loop in seconds, from which elapsed time is measured."""
    return asyncio.get_running_loop().time()


def uniform(low: float, high: float) -> float:
    """Return a random number between two."""
    return random.uniform(low, high)  # noqa: S311  # it keeps no secret
