"""The client of one API, which all calls share: its limits, its breaker, its transport. The path of one attempt."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from contracts import AbsentError, RetryableCallError
from contracts.errors import CallError
from contracts.metrics import worker as metrics
from contracts.types.echo import MismatchError
from services.enrichment.calls.limits import Limits
from services.enrichment.calls.statuses import MisfitError, ServerFailedError, check_accepted, parse_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from contracts import Policy
    from contracts.metrics.counts import Counts
    from services.enrichment.calls.permits import Permit, PermitSource
    from services.enrichment.calls.response import Response
    from services.enrichment.calls.retrier import Effort
    from services.enrichment.calls.transport import Post, Transport

    Send = Callable[[float], Awaitable[Response]]
    """Sends a request within seconds."""

T = TypeVar("T")


class ApiClient:
    """Calls one API. `clock` is in seconds; dates in responses are compared with `now`."""

    def __init__(  # noqa: PLR0913  # the parts of a client
        self,
        name: str,
        policy: Policy,
        transport: Transport,
        permits: PermitSource,
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        counts: Counts,
    ) -> None:
        self._name = name
        self._policy = policy
        self._transport = transport
        self._permits = permits
        self._limits = Limits(policy)
        self._clock = clock
        self._now = now
        self._counts = counts
        self._successes = 0
        self._timeout = policy.timeout.total_seconds()
        self._deadline = policy.deadline.total_seconds()

    def answer(
        self, enrichment: str, target: str, read: Callable[[Any, bytes], T], effort: Effort
    ) -> Awaitable[tuple[bytes, T]]:
        """Make one attempt to GET: return the body, and what `read` makes of its JSON. Raises a CallError."""
        return self._attempt(enrichment, partial(self._transport.get, target), partial(self._parsed, read), effort)

    async def post(self, enrichment: str, post: Post, effort: Effort) -> None:
        """Make one attempt to POST. Raises a CallError unless it is accepted."""
        accept = partial(check_accepted, policy=self._policy, now=self._now)
        await self._attempt(enrichment, partial(self._transport.post, post), accept, effort)

    async def _attempt(
        self, enrichment: str, send: Send, read: Callable[[Response], T], effort: Effort
    ) -> tuple[bytes, T]:
        """Make one attempt within the limits: return the body, and what `read` makes of the response.

        A probe that finds the API still down is no attempt of the request, which goes on waiting. It is one if the API
        works for others: it answers with an error of its own, or has answered another request meanwhile.
        """
        others = self._successes
        while True:
            await self._limits.slots.acquire()  # `async with` would be three coroutines for each call
            try:
                permit = self._free_permit() or await self._wait_for_permit()
                before, failed, pause_s, reason = effort.seconds, None, 0.0, ""
                try:
                    answer = await self._call(enrichment, send, read, effort)
                    failed = False
                except RetryableCallError as failure:
                    failed = not isinstance(failure, MisfitError | MismatchError)
                    pause_s, reason = self._requested_pause(failure), failure.reason
                    is_up = isinstance(failure, ServerFailedError) or self._successes > others
                    if is_up or not failed or not permit.is_probe:
                        raise
                    effort.seconds = before
                except CallError:
                    failed = False
                    raise
                else:
                    self._successes += 1
                    return answer
                finally:
                    self._permits.release(permit, failed=failed, pause_s=pause_s, reason=reason)
            finally:
                self._limits.slots.release()

    def _free_permit(self) -> Permit | None:
        """A permit, if the call need not wait; most calls need not."""
        return None if self._limits.has_rate else self._permits.try_acquire()

    async def _wait_for_permit(self) -> Permit:
        """Wait for the breaker and for the rate limit. The breaker may open while a call waits for the rate limit."""
        while True:
            permit = await self._permits.acquire()
            if not self._limits.must_wait:
                await self._limits.rate()
                return permit
            self._counts.add(metrics.RATE_WAITS, self._name)
            try:
                await self._limits.rate()
            except BaseException:
                self._permits.release(permit, failed=None)
                raise
            if self._permits.is_valid(permit):
                return permit

    def _requested_pause(self, failure: RetryableCallError) -> float:
        """The pause in seconds that the API requested. It applies to all calls of the API."""
        retry_after = failure.retry_after
        return 0.0 if retry_after is None else min(retry_after, self._policy.max_retry_after).total_seconds()

    async def _call(
        self, enrichment: str, send: Send, read: Callable[[Response], T], effort: Effort
    ) -> tuple[bytes, T]:
        started = self._clock()
        effort.calls += 1
        outcome = "given_up"
        try:
            response = await send(min(self._timeout, self._deadline - effort.seconds))
            result = read(response)
            outcome = "result"
        except CallError as error:
            outcome = _outcome(error)
            raise
        finally:
            seconds = self._clock() - started
            effort.seconds += seconds
            self._counts.observe(metrics.CALL_SECONDS, seconds, self._name)
            self._counts.add(metrics.CALLS, self._name, enrichment, outcome)
        return response.body, result

    def _parsed(self, read: Callable[[Any, bytes], T], response: Response) -> T:
        """Read the JSON of a response. One to another request closes its connection: later ones may be shifted too."""
        try:
            return read(parse_json(response, self._policy, self._now), response.body)
        except MismatchError:
            response.drop()
            raise


def _outcome(error: CallError) -> str:
    """The outcome of a failed call, as a metric label."""
    match error:
        case AbsentError():
            return "absence"
        case RetryableCallError():
            return "retryable"
    return "permanent"
