"""The pause before the next call of a request: pure functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from contracts import Policy

MOST_DOUBLINGS = 32
"""Beyond this the doubled backoff is over any limit, and under any float's."""


def pause(
    policy: Policy,
    calls: int,
    retry_after: timedelta | None,
    *,
    draw: Callable[[float, float], float],
) -> float:
    """Seconds to wait after this many calls: exponential backoff with full jitter (AWS Architecture Blog, 2015).

    The Retry-After of the API, up to a limit, is added to the jitter, so that the calls do not return all at once.
    """
    doubled = policy.backoff.total_seconds() * 2 ** min(calls - 1, MOST_DOUBLINGS)
    jitter = draw(0.0, min(doubled, policy.max_backoff.total_seconds()))
    minimum = min(retry_after, policy.max_retry_after).total_seconds() if retry_after else 0.0
    return minimum + jitter


def parse_retry_after(value: str | None, now: datetime) -> timedelta | None:
    """Return the wait of a Retry-After header, in either form of RFC 9110, 10.2.3; None if it is absent or invalid."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text[:10]), 10**9))
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(until - now, timedelta(0))
