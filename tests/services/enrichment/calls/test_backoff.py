"""The wait before the next call."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import Policy
from services.enrichment.calls.backoff import parse_retry_after, pause

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def upper_bound(_: float, high: float) -> float:
    return high


@given(calls=st.integers(1, 10_000), seconds=st.none() | st.integers(0, 10**6))
def test_bounded_and_never_before_retry_after(calls: int, seconds: int | None) -> None:
    retry_after = None if seconds is None else timedelta(seconds=seconds)
    least, policy = min(seconds or 0, 60), Policy()
    for draw in (upper_bound, min):
        waited = pause(policy, calls, retry_after, draw=draw)
        assert least <= waited <= least + policy.max_backoff.total_seconds()


def test_doubles_up_to_its_limit() -> None:
    policy = Policy(backoff=timedelta(seconds=1), max_backoff=timedelta(seconds=5))
    waits = [pause(policy, calls, None, draw=upper_bound) for calls in range(1, 6)]
    assert waits == [1, 2, 4, 5, 5]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("Thu, 01 Jan 2026 00:01:00 GMT", 60),
        ("Thu, 01 Jan 2026 00:01:00 -0000", 60),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 0),
        (None, None),
        ("soon", None),
        ("-5", None),
        ("²", None),
        ("Wed, 21 Oct 99999999999 07:28:00 GMT", None),
        ("9" * 400, 10**9),
    ],
)
def test_retry_after_in_both_forms(header: str | None, seconds: int | None) -> None:
    expected = None if seconds is None else timedelta(seconds=seconds)
    assert parse_retry_after(header, NOW) == expected
