"""The circuit breaker of an API: while the API is down its calls wait, and a few try whether it is back."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from services.enrichment.calls.door import Ticket

if TYPE_CHECKING:
    from collections.abc import Callable

    from contracts import Breaker

    Later = Callable[[float, Callable[[], None]], object]


class State(IntEnum):
    """As the metrics tell it."""

    CLOSED = 0
    """Calls pass."""
    HALF_OPEN = 1
    """A few calls pass, as probes."""
    OPEN = 2
    """No call passes."""


@dataclass(frozen=True)
class LatestFailure:
    """Why calls fail now: the reason of the latest failure, and how many failed for it in a row."""

    reason: str
    count: int


class CircuitBreaker:
    """Lets calls through by turns: closed, open for a time, half open, then closed or open again. Implements Door.

    Each change of state begins a new turn. A call has a ticket, which is the turn that it began in: what it has to tell
    of an earlier turn no longer counts. `later` calls back after a time in seconds, on `clock`. `told` learns of each
    state, and while the breaker is not closed of each failure, whichever turn its call began in.
    """

    def __init__(
        self,
        policy: Breaker,
        *,
        clock: Callable[[], float],
        later: Later,
        told: Callable[[State, LatestFailure | None], None],
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._later = later
        self._told = told
        self._to_open = math.ceil(policy.share * policy.probes)
        self._state = State.CLOSED
        self._failure: LatestFailure | None = None
        self._last: deque[tuple[float, bool]] = deque(maxlen=policy.calls)
        self._failures = 0
        self._probes = _Probes()
        self._waiting: deque[asyncio.Future[Ticket]] = deque()
        self._passes = asyncio.Event()
        self._change(State.CLOSED)

    @property
    def blocks(self) -> bool:
        """Whether a call that began now would have to wait."""
        if self._state is State.HALF_OPEN:
            return self._probes.all >= self._policy.probes
        return self._state is State.OPEN

    async def unblocked(self) -> None:
        """Return when a call that begins then need not wait."""
        while self.blocks:
            await self._passes.wait()

    def at_once(self) -> Ticket | None:
        """The ticket of a call that need not wait, if it need not. `ended` must follow."""
        return None if self.blocks else self._ticket()

    async def admitted(self) -> Ticket:
        """Wait until a call may be made, in the order of arrival: its ticket. `ended` must follow."""
        if ticket := self.at_once():
            return ticket
        waiting: asyncio.Future[Ticket] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            return await waiting
        except asyncio.CancelledError:
            if not waiting.cancelled():  # it was let through, and will not go
                self.ended(waiting.result(), failed=None)
            raise

    def holds(self, ticket: Ticket) -> bool:
        """Whether a call may still be made by this ticket."""
        return ticket is self._turn

    def ended(self, ticket: Ticket, *, failed: bool | None, rest: float = 0.0, why: str = "") -> None:
        """Note how a call ended: see `Door.ended`. An API that asks for a rest counts as down."""
        if failed:
            self._failed(why)
        if ticket is not self._turn:
            return
        if rest > 0:
            self._change(State.OPEN, rest)
        elif self._state is State.HALF_OPEN:
            self._probed(failed=failed)
        elif failed is not None:
            self._note(failed=failed)

    def _failed(self, reason: str) -> None:
        before = self._failure
        count = before.count + 1 if before is not None and before.reason == reason else 1
        self._failure = LatestFailure(reason, count)
        if self._state is not State.CLOSED:
            self._told(self._state, self._failure)

    def _note(self, *, failed: bool) -> None:
        if not failed:
            self._failure = None
        now, window = self._clock(), self._policy.window.total_seconds()
        while self._last and (len(self._last) == self._last.maxlen or self._last[0][0] <= now - window):
            self._failures -= self._last.popleft()[1]
        self._last.append((now, failed))
        self._failures += failed
        if failed and self._failures >= max(self._policy.failures, self._policy.share * len(self._last)):
            self._change(State.OPEN)

    def _probed(self, *, failed: bool | None) -> None:
        self._probes.under_way -= 1
        self._probes.failed += failed is True
        self._probes.succeeded += failed is False
        if self._probes.failed >= self._to_open:
            self._change(State.OPEN)
        elif self._probes.succeeded > self._policy.probes - self._to_open:
            self._change(State.CLOSED)
        else:
            self._wake()

    def _change(self, state: State, rest: float = 0.0) -> None:
        self._state = state
        self._turn = Ticket(is_probe=state is State.HALF_OPEN)
        self._last.clear()
        self._failures = 0
        self._probes = _Probes()
        if state is State.CLOSED:
            self._failure = None
        if state is State.OPEN:
            self._passes.clear()
            self._later(max(rest, self._policy.open_for.total_seconds()), self._half_open)
        self._told(state, self._failure)
        self._wake()

    def _half_open(self) -> None:
        self._change(State.HALF_OPEN)

    def _ticket(self) -> Ticket:
        self._probes.under_way += self._state is State.HALF_OPEN
        if self.blocks:
            self._passes.clear()
        return self._turn

    def _wake(self) -> None:
        """Let those through for whom there is room now, and say whether there is room for more."""
        while self._waiting and not self.blocks:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(self._ticket())
        if not self.blocks:
            self._passes.set()


@dataclass
class _Probes:
    """How the calls stand that were let through since the breaker is half open."""

    under_way: int = 0
    succeeded: int = 0
    failed: int = 0

    @property
    def all(self) -> int:
        return self.under_way + self.succeeded + self.failed
