"""A policy by which nothing could be called is refused, with what to write instead."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from contracts import Breaker, Cache, DeclarationError, Policy, RateLimit

SECOND = timedelta(seconds=1)
NONE = timedelta(0)
ANY: dict[str, Any] = {"retries": 3}
TEXT: dict[str, Any] = {"attempts": "many"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Policy(timeout=NONE), r"Policy\(timeout=timedelta\(0\)\): leaves a call no time. Write timeout="),
        (lambda: Policy(timeout=-SECOND), "Write timeout="),
        (lambda: Policy(deadline=SECOND), r"is less than timeout=.*Write deadline=timedelta\(seconds=5\)"),
        (lambda: Policy(attempts=0), "Write attempts=1"),
        (lambda: Policy(backoff=-SECOND), r"Write backoff=timedelta\(0\)"),
        (lambda: Policy(max_backoff=SECOND / 10), r"Write max_backoff=timedelta\(microseconds=200000\) or more"),
        (lambda: Policy(backoff=60 * SECOND), r"Write max_backoff=timedelta\(seconds=60\) or more"),
        (lambda: Policy(max_retry_after=-SECOND), "Write max_retry_after="),
        (lambda: Policy(success=frozenset()), "Write success="),
        (lambda: Policy(absence=frozenset({200})), "shares a status with success"),
        (lambda: Policy(retryable=frozenset({404})), "shares a status with the others"),
        (lambda: Policy(success=frozenset({20})), "numbers from 100 to 599"),
        (lambda: Policy(concurrency=0), "Write concurrency=100"),
        (lambda: Policy(largest_answer=0), "Write largest_answer="),
        (lambda: Policy(redirects=-1), "Write redirects=0"),
        (lambda: Policy(**ANY), r"Policy\(retries\).*Write some of these: timeout, deadline, attempts"),
        (lambda: Policy(**TEXT), r"Policy\(attempts\): Input should be a valid integer"),
        (lambda: RateLimit(calls=0), "Write calls=10"),
        (lambda: RateLimit(calls=1, per=NONE), "Write per="),
        (lambda: Breaker(share=0), "Write share=0.5"),
        (lambda: Breaker(share=1.1), "Write share=0.5"),
        (lambda: Breaker(failures=0), "Write failures=5"),
        (lambda: Breaker(failures=9, calls=8), "Write calls=9 or more"),
        (lambda: Breaker(window=NONE), "Write window="),
        (lambda: Breaker(open_for=NONE), "Write open_for="),
        (lambda: Breaker(probes=0), "Write probes=3"),
        (lambda: Cache(results=-SECOND), "Write results="),
        (lambda: Cache(absences=-SECOND), "Write absences="),
        (lambda: Cache(size=0), "Write cache=None"),
    ],
)
def test_an_impossible_policy_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        make()


def test_the_outermost_numbers_are_allowed() -> None:
    Policy(attempts=1, backoff=NONE, max_backoff=NONE, max_retry_after=NONE, timeout=SECOND, deadline=SECOND)
    Policy(concurrency=1, largest_answer=1, redirects=0, rate=None, breaker=None, cache=None)
    Breaker(share=1, failures=1, calls=1, probes=1)
    Cache(results=NONE, absences=NONE, size=1)


def test_each_status_has_one_meaning() -> None:
    policy = Policy(success=frozenset({200}), absence=frozenset({404, 403}), retryable=frozenset({503}))
    assert [*policy.success, *sorted(policy.absence), *policy.retryable] == [200, 403, 404, 503]
