"""Sends requests, and opens streams: at one address after the other, within a deadline."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple

from services.client.errors import AttemptFailedError, UnreachableError
from services.runtime.retry import backoff, retried

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from services.client.addresses import Addresses
    from services.client.answers import T
    from services.client.transport import ClientTransport, InstanceResponse
    from services.runtime.retry import Draw

ATTEMPT_S = 2.0
"""The timeout of one attempt at one address."""
FIRST_PAUSE_S, MAX_PAUSE_S = 0.04, 1.0
"""The limits of the jitter: after the first failure, and after many."""
MIN_ATTEMPT_S = 0.05
"""The least time left for which an attempt is made."""


class ClientRequest(NamedTuple):
    """One request: what it reads, for the text of errors, and what is sent."""

    what: str
    target: str
    deadline_s: float
    wait_s: float = 0.0
    """How long the instance may wait for a version."""
    body: Mapping[str, Any] | None = None


class RequestSender:
    """Sends requests. `clock` returns seconds, `sleep` waits for them, `draw` returns a random number between two."""

    def __init__(
        self,
        transport: ClientTransport,
        addresses: Addresses,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        draw: Draw = random.uniform,
    ) -> None:
        self._transport = transport
        self._addresses = addresses
        self._clock = clock
        self._sleep = sleep
        self._draw = draw

    async def send(self, request: ClientRequest, read: Callable[[InstanceResponse], T]) -> T:
        """Return `read(response)`; it may raise AttemptFailedError. Raises the errors of the client."""

        async def once(url: str, left_s: float) -> T:
            return await self.send_to(url, request, min(left_s, ATTEMPT_S + request.wait_s), read)

        return await self.retry(request.what, request.deadline_s, once)

    async def retry(self, what: str, deadline_s: float, once: Callable[[str, float], Awaitable[T]]) -> T:
        """Return the result of `once`, which gets an address and the seconds left.

        Raises NoAnswerError, or a kind of it, and what else `once` raises.
        """
        end, tried = self._clock() + deadline_s, Counter[str]()

        async def attempt() -> T:
            return await once(self._next(tried), end - self._clock())

        def pause(failures: int, failure: AttemptFailedError) -> float | None:
            pause_s = self._pause_s(failures, failure)
            return None if self._clock() + pause_s + MIN_ATTEMPT_S > end else pause_s

        try:
            return await retried(attempt, AttemptFailedError, pause, self._sleep)
        except AttemptFailedError as last:
            raise last.kind(what, deadline_s, tried.total(), last.reason) from last

    async def send_to(
        self, url: str, request: ClientRequest, within_s: float, read: Callable[[InstanceResponse], T]
    ) -> T:
        """Send to one address, once. Raises AttemptFailedError, too."""
        try:
            waits = request.wait_s > 0
            reply = await self._transport.send(url, request.target, within_s, request.body, waits=waits)
        except UnreachableError:
            self._addresses.failed(url)
            raise
        self._addresses.worked(url)
        return read(reply)

    async def stream(
        self, what: str, patience_s: float, connect: Callable[[str], AsyncGenerator[T | None, None]]
    ) -> AsyncGenerator[T, None]:
        """Yield what `connect` yields, which ends with AttemptFailedError, from one address after the other.

        None is a heartbeat. Raises NoAnswerError after `patience_s` without anything.
        """
        tried = Counter[str]()
        heard, failures = self._clock(), 0
        while True:
            url = self._next(tried)
            try:
                async with aclosing(connect(url)) as updates:
                    async for update in updates:
                        heard, failures = self._clock(), 0
                        tried.clear()
                        if update is not None:
                            yield update
                            heard = self._clock()  # the reader's time is not theirs
            except AttemptFailedError as failed:
                failures += 1
                if isinstance(failed, UnreachableError):
                    self._addresses.failed(url)
                if self._clock() - heard >= patience_s:
                    raise failed.kind(what, patience_s, failures, failed.reason) from failed
                await self._sleep(self._pause_s(failures, failed))

    def _next(self, tried: Counter[str]) -> str:
        """Return the address that was tried least, and count it."""
        url = min(self._addresses.by_preference(), key=tried.__getitem__)
        tried[url] += 1
        return url

    def _pause_s(self, failures: int, failure: AttemptFailedError) -> float:
        """Return Retry-After plus jitter, so that clients do not return at once."""
        return (failure.after_s or 0.0) + backoff(failures, FIRST_PAUSE_S, MAX_PAUSE_S, self._draw)
