"""The circuit breaker of an API: while the API is down its calls wait, and a few probes test whether it is back."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from services.enrichment.calls.permits import Permit

if TYPE_CHECKING:
    from collections.abc import Callable

    from contracts import Breaker

    CallLater = Callable[[float, Callable[[], None]], object]


MOMENT_S = 0.001
"""A timer may be early by this time."""


class BreakerState(IntEnum):
    """The state, with its value in the metrics."""

    CLOSED = 0
    """Closed: calls pass."""
    HALF_OPEN = 1
    """Half open: a few calls pass, as probes."""
    OPEN = 2
    """Open: no call passes."""


@dataclass(frozen=True)
class LatestFailure:
    """The reason of the latest failure, and the number of consecutive failures with it."""

    reason: str
    count: int


class CircuitBreaker:
    """Closed, open for a time, half open, then closed or open again. Implements PermitSource.

    Each change of state begins a new period with a new permit: results of calls with an earlier permit do not count.
    `later` calls back after a time in seconds, on `clock`. `on_change` receives each state, and each failure while the
    breaker is not closed, whatever the permit of its call.
    """

    def __init__(
        self,
        policy: Breaker,
        *,
        clock: Callable[[], float],
        later: CallLater,
        on_change: Callable[[BreakerState, LatestFailure | None], None],
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._later = later
        self._on_change = on_change
        self._to_open = math.ceil(policy.share * policy.probes)
        self._state = BreakerState.CLOSED
        self._failure: LatestFailure | None = None
        self._last: deque[tuple[float, bool]] = deque(maxlen=policy.calls)
        self._failures = 0
        self._probes = _Probes()
        self._waiting: deque[asyncio.Future[Permit]] = deque()
        self._passes = asyncio.Event()
        self._open_until = 0.0
        self._change(BreakerState.CLOSED)

    @property
    def is_blocked(self) -> bool:
        """Return whether a call that started now would have to wait."""
        if self._state is BreakerState.HALF_OPEN:
            return self._probes.all >= self._policy.probes
        return self._state is BreakerState.OPEN

    async def wait_until_unblocked(self) -> None:
        """Wait until a call can start without waiting."""
        while self.is_blocked:
            await self._passes.wait()

    def try_acquire(self) -> Permit | None:
        """Return a permit if one is free. `release` must follow."""
        return None if self.is_blocked else self._grant()

    async def acquire(self) -> Permit:
        """Wait for a permit, in the order of arrival. `release` must follow."""
        if permit := self.try_acquire():
            return permit
        while True:
            waiting: asyncio.Future[Permit] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            try:
                permit = await waiting
            except asyncio.CancelledError:
                if not waiting.cancelled():  # it has a permit, and will not use it
                    self.release(waiting.result(), failed=None)
                raise
            if self.is_valid(permit):  # else the breaker has opened before this task ran
                return permit

    def is_valid(self, permit: Permit) -> bool:
        """Return whether a call may still start with this permit."""
        return permit is self._permit

    def release(self, permit: Permit, *, failed: bool | None, pause_s: float = 0.0, reason: str = "") -> None:
        """Note the result of a call: see `PermitSource.release`. An API that requests a pause counts as down.

        The pause begins now, whatever the permit of the call.
        """
        if failed:
            self._failed(reason)
        if pause_s > 0:
            self._pause(pause_s)
        elif permit is not self._permit:
            return
        elif self._state is BreakerState.HALF_OPEN:
            self._probed(failed=failed)
        elif failed is not None:
            self._note(failed=failed)

    def _failed(self, reason: str) -> None:
        before = self._failure
        count = before.count + 1 if before is not None and before.reason == reason else 1
        self._failure = LatestFailure(reason, count)
        if self._state is not BreakerState.CLOSED:
            self._on_change(self._state, self._failure)

    def _pause(self, seconds: float) -> None:
        """Open for this time at least, or stay open for longer."""
        if self._state is BreakerState.OPEN:
            self._open_until = max(self._open_until, self._clock() + seconds)
        else:
            self._change(BreakerState.OPEN, seconds)

    def _note(self, *, failed: bool) -> None:
        if not failed:
            self._failure = None
        now, window = self._clock(), self._policy.window.total_seconds()
        while self._last and (len(self._last) == self._last.maxlen or self._last[0][0] <= now - window):
            self._failures -= self._last.popleft()[1]
        self._last.append((now, failed))
        self._failures += failed
        if failed and self._failures >= max(self._policy.failures, self._policy.share * len(self._last)):
            self._change(BreakerState.OPEN)

    def _probed(self, *, failed: bool | None) -> None:
        self._probes.under_way -= 1
        self._probes.failed += failed is True
        self._probes.succeeded += failed is False
        if self._probes.failed >= self._to_open:
            self._change(BreakerState.OPEN)
        elif self._probes.succeeded > self._policy.probes - self._to_open:
            self._change(BreakerState.CLOSED)
        else:
            self._wake()

    def _change(self, state: BreakerState, pause_s: float = 0.0) -> None:
        self._state = state
        self._permit = Permit(is_probe=state is BreakerState.HALF_OPEN)
        self._last.clear()
        self._failures = 0
        self._probes = _Probes()
        if state is BreakerState.CLOSED:
            self._failure = None
        if state is BreakerState.OPEN:
            self._passes.clear()
            open_for = max(pause_s, self._policy.open_for.total_seconds())
            self._open_until = self._clock() + open_for
            self._later(open_for, self._half_open)
        self._on_change(state, self._failure)
        self._wake()

    def _half_open(self) -> None:
        """Let probes pass; wait on if the API has requested a longer pause meanwhile."""
        if (open_for := self._open_until - self._clock()) > MOMENT_S:
            self._later(open_for, self._half_open)
        else:
            self._change(BreakerState.HALF_OPEN)

    def _grant(self) -> Permit:
        self._probes.under_way += self._state is BreakerState.HALF_OPEN
        if self.is_blocked:
            self._passes.clear()
        return self._permit

    def _wake(self) -> None:
        """Grant permits to the waiting calls while there is room, then wake the others if there is room for more."""
        while self._waiting and not self.is_blocked:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(self._grant())
        if not self.is_blocked:
            self._passes.set()


@dataclass
class _Probes:
    """The calls with permits since the breaker is half open."""

    under_way: int = 0
    succeeded: int = 0
    failed: int = 0

    @property
    def all(self) -> int:
        return self.under_way + self.succeeded + self.failed
