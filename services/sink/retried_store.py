"""Uses a store until it answers: an outage delays the sink, and needs no operator."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from contracts.metrics import sink as metrics
from contracts.sinks import PositionConflictError, RowsRefusedError, StoreUnavailableError
from services.runtime.retry import backoff, retried

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import timedelta

    from contracts.metrics.counts import Counts
    from contracts.sinks import RowBatch, SinkStore
    from services.runtime.retry import Draw

T = TypeVar("T")
log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0


class RetriedStore:
    """The store of one state. Its methods return when the store has answered; one of them runs at a time."""

    def __init__(  # noqa: PLR0913, PLR0917  # its dependencies
        self, state: str, store: SinkStore, timeout: timedelta, counts: Counts, clock: Callable[[], float], draw: Draw
    ) -> None:
        self._state = state
        self._store = store
        self._timeout_s = timeout.total_seconds()
        self._counts = counts
        self._clock = clock
        self._draw = draw
        self._turn = asyncio.Lock()
        self._is_open = False
        self._failed_at: float | None = None
        self._reason = ""

    async def open(self) -> None:
        """Connect, and check or create the target. Raises StoreMismatchError."""
        await self._retried(_nothing)

    async def positions(self) -> Mapping[int, int]:
        """Return the position of each partition that has one."""
        return await self._retried(self._store.positions)

    async def write(self, batch: RowBatch) -> int:
        """Apply a batch; return the number of changed rows. Raises PositionConflictError, RowsRefusedError."""
        return await self._retried(lambda: self._store.write(batch))

    async def remove_expired(self, now: int) -> int:
        """Remove rows that have expired `now`; return how many."""
        return await self._retried(lambda: self._store.remove_expired(now))

    async def close(self) -> None:
        """Close the connection."""
        await self._store.close()

    @property
    def outage_s(self) -> float:
        """The time for which the store has been unavailable; 0 while it answers."""
        return 0.0 if self._failed_at is None else self._clock() - self._failed_at

    def problem(self) -> str | None:
        """Return why nothing can be written now; None while the store answers."""
        if self._failed_at is None:
            return None
        return f"the store has been unavailable for {self.outage_s:.0f} s ({self._reason})"

    async def _retried(self, operation: Callable[[], Awaitable[T]]) -> T:
        return await retried(partial(self._attempt, operation), StoreUnavailableError, self._pause)

    def _pause(self, failures: int, _: StoreUnavailableError) -> float:
        return backoff(failures, FIRST_PAUSE_S, LONGEST_PAUSE_S, self._draw)

    async def _attempt(self, operation: Callable[[], Awaitable[T]]) -> T:
        async with self._turn:
            try:
                result = await self._answered(operation)
            except StoreUnavailableError as error:
                self._note_failure(error.reason)
                raise
            except (PositionConflictError, RowsRefusedError):
                self._note_answer()
                raise
            self._note_answer()
            return result

    async def _answered(self, operation: Callable[[], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(self._timeout_s):
                if not self._is_open:
                    await self._store.open()
                    self._is_open = True
                return await operation()
        except TimeoutError as error:
            raise StoreUnavailableError(f"no answer within {self._timeout_s:g} s") from error

    def _note_failure(self, reason: str) -> None:
        self._is_open = False
        self._reason = reason
        self._counts.add(metrics.FAILURES, self._state)
        log.warning("the store is unavailable", extra={"facts": {"state": self._state, "reason": reason}})
        if self._failed_at is None:
            self._failed_at = self._clock()

    def _note_answer(self) -> None:
        if self._failed_at is not None:
            log.info("the store answers again", extra={"facts": {"state": self._state, "after_s": self.outage_s}})
        self._failed_at = None


async def _nothing() -> None:
    """Do nothing beyond opening the store."""
