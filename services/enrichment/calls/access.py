"""One API as all its calls share it: its limits, its breaker, its transport. The path of one try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from contracts import AbsentError, RetryableCallError
from contracts.errors import CallError
from contracts.metrics import worker as metrics
from contracts.types.echo import MismatchError
from services.enrichment.calls.limits import Limits
from services.enrichment.calls.statuses import MisfitError, document

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from contracts import Policy
    from contracts.metrics.counts import Counts
    from services.enrichment.calls.door import Door, Ticket
    from services.enrichment.calls.response import Response
    from services.enrichment.calls.transport import Transport
    from services.enrichment.calls.tries import Effort

T = TypeVar("T")


class Access:
    """The way to one API. `clock` is in seconds, `now` the time that dates in responses are compared with."""

    def __init__(  # noqa: PLR0913  # the parts of a way
        self,
        name: str,
        policy: Policy,
        transport: Transport,
        door: Door,
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        counts: Counts,
    ) -> None:
        self._name = name
        self._policy = policy
        self._transport = transport
        self._door = door
        self._limits = Limits(policy)
        self._clock = clock
        self._now = now
        self._counts = counts
        self._timeout = policy.timeout.total_seconds()
        self._deadline = policy.deadline.total_seconds()

    async def answer(
        self, enrichment: str, target: str, read: Callable[[Any, bytes], T], effort: Effort
    ) -> tuple[bytes, T]:
        """One try, when its turn has come: the answer as it came, and as `read` reads its JSON. Raises a CallError.

        A call that finds the API still down is no try: it says nothing of the request, which goes on waiting.
        """
        while True:
            await self._limits.places.acquire()  # `async with` would be three coroutines for each call
            try:
                ticket = self._at_once() or await self._turn()
                before, failed, rest, why = effort.seconds, None, 0.0, ""
                try:
                    answer = await self._call(enrichment, target, read, effort)
                    failed = False
                except RetryableCallError as failure:
                    failed = not isinstance(failure, MisfitError | MismatchError)
                    rest, why = self._rest(failure), failure.reason
                    if not failed or not ticket.is_probe:
                        raise
                    effort.seconds = before
                except CallError:
                    failed = False
                    raise
                else:
                    return answer
                finally:
                    self._door.ended(ticket, failed=failed, rest=rest, why=why)
            finally:
                self._limits.places.release()

    def _at_once(self) -> Ticket | None:
        """The turn of a call that need not wait for it, as most need not."""
        return None if self._limits.has_rate else self._door.at_once()

    async def _turn(self) -> Ticket:
        """Wait for the breaker and for the rate. While a call waits for the rate, the breaker may open."""
        while True:
            ticket = await self._door.admitted()
            if not self._limits.must_wait:
                await self._limits.rate()
                return ticket
            self._counts.add(metrics.RATE_WAITS, self._name)
            try:
                await self._limits.rate()
            except BaseException:
                self._door.ended(ticket, failed=None)
                raise
            if self._door.holds(ticket):
                return ticket

    def _rest(self, failure: RetryableCallError) -> float:
        """How long the API asked not to be called. That is said of the API, and so all its calls keep to it."""
        asked = failure.retry_after
        return 0.0 if asked is None else min(asked, self._policy.retry_after_most).total_seconds()

    async def _call(
        self, enrichment: str, target: str, read: Callable[[Any, bytes], T], effort: Effort
    ) -> tuple[bytes, T]:
        begun = self._clock()
        effort.calls += 1
        outcome = "given_up"
        try:
            response = await self._transport.get(target, min(self._timeout, self._deadline - effort.seconds))
            result = self._read(response, read)
            outcome = "result"
        except CallError as error:
            outcome = _named(error)
            raise
        finally:
            seconds = self._clock() - begun
            effort.seconds += seconds
            self._counts.observe(metrics.CALL_SECONDS, seconds, self._name)
            self._counts.add(metrics.CALLS, self._name, enrichment, outcome)
        return response.body, result

    def _read(self, response: Response, read: Callable[[Any, bytes], T]) -> T:
        """What a response says. One that answers another request drops its connection: the next may be shifted too."""
        try:
            return read(document(response, self._policy, self._now), response.body)
        except MismatchError:
            response.drop()
            raise


def _named(error: CallError) -> str:
    """How a call ended, as the metrics call it."""
    match error:
        case AbsentError():
            return "absence"
        case RetryableCallError():
            return "retryable"
    return "permanent"
