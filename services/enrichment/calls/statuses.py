"""Interprets a response by its status and the policy, and parses its body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from pydantic import ValidationError

from contracts import AbsentError, PermanentCallError, RetryableCallError
from contracts.errors import problem_of
from contracts.types.echo import answer_of
from services.enrichment.calls.backoff import parse_retry_after

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime, timedelta

    from contracts import Policy
    from contracts.errors import CallError
    from contracts.model.enrichment import M
    from services.enrichment.calls.response import Response

ACCEPTED = range(200, 300)
REDIRECT = range(300, 400)
UNAVAILABLE = frozenset({408, 425, 429, 502, 503, 504})
"""Statuses by which an API, or a proxy before it, takes no request for now (RFC 9110, RFC 6585, RFC 8470)."""
RESPONSE_HEAD = 500
"""The bytes of a response in a dead letter."""


class MisfitError(RetryableCallError):
    """A response that does not fit the model. The API is up, so the breaker ignores it."""


class ServerFailedError(RetryableCallError):
    """A retryable status of an API that is up, and fails for this request: 500, unlike 503."""


class RefusedError(PermanentCallError):
    """A status that means a permanent failure."""

    def __init__(self, status: int, why: str, *, response: str | None = None) -> None:
        super().__init__(f"status {status}{why}", response=response)
        self.status = status


def parse_json(response: Response, policy: Policy, now: Callable[[], datetime]) -> Any:
    """The JSON of a successful response. Raises a CallError for every other one.

    orjson is stricter than pydantic's own parser: it rejects NaN. Proxies return HTML with status 200.
    """
    if response.status not in policy.success:
        delay = parse_retry_after(response.retry_after, now())
        raise status_error(response.status, policy, body=response.body, retry_after=delay)
    try:
        return orjson.loads(response.body)
    except orjson.JSONDecodeError as error:
        raise RetryableCallError(f"the response is not JSON ({error.msg})", response=head(response.body)) from error


def check_accepted(response: Response, policy: Policy, now: Callable[[], datetime]) -> None:
    """Raise a CallError if a webhook did not accept the delivery. No status means an absence."""
    if response.status in ACCEPTED:
        return
    if response.status in policy.retryable:
        delay = parse_retry_after(response.retry_after, now())
        raise status_error(response.status, policy, body=response.body, retry_after=delay)
    why = ": redirects are not followed" if response.status in REDIRECT else ""
    raise RefusedError(response.status, why, response=head(response.body))


def status_error(status: int, policy: Policy, *, body: bytes, retry_after: timedelta | None = None) -> CallError:
    """Return the error of a status that is no success."""
    if status in policy.absence:
        return AbsentError(f"status {status}")
    if status in policy.retryable:
        kind = RetryableCallError if status in UNAVAILABLE else ServerFailedError
        return kind(f"status {status}", retry_after, response=head(body))
    why = ": redirects are not followed" if status in REDIRECT and not policy.redirects else ""
    return RefusedError(status, why, response=head(body))


def validate(model: type[M], values: Mapping[str, Any], found: Any, body: bytes) -> M:
    """Validate the response to a call with these values. Raises MisfitError, MismatchError."""
    try:
        return answer_of(model, found, values)
    except ValidationError as error:
        misfit = f"the response does not fit {model.__name__}: {first_misfit(error)}"
        raise MisfitError(misfit, response=head(body)) from error


def first_misfit(error: ValidationError) -> str:
    """Return the first misfit with its reason, without the value, which may be a secret."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    return problem_of(first, "the whole")[:200]


def head(body: bytes) -> str:
    """Return the beginning of a response, for the dead letter."""
    return body[:RESPONSE_HEAD].decode(errors="replace")
