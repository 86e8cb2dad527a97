"""The pause before the next call of a request: pure functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from services.runtime.retry import backoff

if TYPE_CHECKING:
    from contracts import Policy
    from services.runtime.retry import Draw


def pause(policy: Policy, calls: int, retry_after: timedelta | None, *, draw: Draw) -> float:
    """Return the seconds to wait after this many calls.

    The Retry-After of the API, up to a limit, is added to the jitter, so that the calls do not return all at once.
    """
    minimum = min(retry_after, policy.max_retry_after).total_seconds() if retry_after else 0.0
    return minimum + backoff(calls, policy.backoff.total_seconds(), policy.max_backoff.total_seconds(), draw)


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
