"""Starts the requests of one API within its limits. Requests of other APIs do not wait for them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from services.enrichment.in_flight import PendingRequest
    from services.enrichment.partition_state import PartitionState
    from services.runtime.worker.partition import CreateTask

    Answer = Callable[[PartitionState, PendingRequest], Coroutine[None, None, None]]


class Availability(Protocol):
    """Reports which APIs can be called now. An open circuit breaker makes its API unavailable."""

    def is_available(self, api: str) -> bool:
        """Return whether a request of this API may start."""
        ...

    async def wait_until_available(self, api: str) -> None:
        """Wait until a request of this API may start."""
        ...


class Dispatcher:
    """The queue of one API, in the order of planning. A queued request has no task.

    At most `max_in_flight` requests run at once, and none starts while the API is unavailable, nor while those that run
    take `max_bytes`: they stay in memory during an outage, which must leave room for other APIs.
    """

    def __init__(  # noqa: PLR0913, PLR0917  # it connects these parts
        self,
        api: str,
        max_in_flight: int,
        max_bytes: int,
        availability: Availability,
        create_task: CreateTask,
        answer: Answer,
    ) -> None:
        self.api = api
        self._free = max_in_flight
        self._free_bytes = max_bytes
        self._low = max_in_flight // 2
        self._availability = availability
        self._create_task = create_task
        self._answer = answer
        self._queue: OrderedDict[PendingRequest, PartitionState] = OrderedDict()
        self._waiting_for_api: asyncio.Task[None] | None = None
        self._is_closed = False
        self.is_low = asyncio.Event()
        """Set while the queue is at most half as long as the number of requests that may run at once."""
        self.is_low.set()

    def add(self, state: PartitionState, pending: PendingRequest) -> None:
        """Start a request now, or when its turn comes. A skipped request makes no call, so it does not wait."""
        if pending.request.skipped is not None:
            self._start(state, pending)
            return
        self._queue[pending] = state
        pending.dispatcher = self
        self.dispatch()
        if len(self._queue) > self._low:
            self.is_low.clear()

    def dispatch(self) -> None:
        """Start queued requests while the limits allow it."""
        while self._queue and self._free_bytes > 0 and self._can_start():
            pending, state = self._queue.popitem(last=False)
            if state.can_start(pending):
                self._start(state, pending)
        self._update()

    @property
    def last(self) -> tuple[PendingRequest, PartitionState] | None:
        """The last request of the queue."""
        return next(reversed(self._queue.items()), None)

    def discard(self, pending: PendingRequest) -> None:
        """Remove a request from the queue, if it is still there: it is cancelled."""
        self._queue.pop(pending, None)
        self._update()

    def close(self) -> None:
        """Start no further request, and stop waiting for the API."""
        self._is_closed = True
        if self._waiting_for_api:
            self._waiting_for_api.cancel()

    def __len__(self) -> int:
        return len(self._queue)

    def _update(self) -> None:
        if len(self._queue) <= self._low:
            self.is_low.set()

    def _can_start(self) -> bool:
        if self._free <= 0 or self._waiting_for_api or self._is_closed:  # below zero: skipped requests do not wait
            return False
        if self._availability.is_available(self.api):
            return True
        self._waiting_for_api = self._create_task(self._resume_when_available())
        return False

    def _start(self, state: PartitionState, pending: PendingRequest) -> None:
        self._free -= 1
        task = state.partition.spawn(self._answer(state, pending))
        state.start(pending, task)
        self._free_bytes -= pending.counted_bytes
        task.add_done_callback(partial(self._on_done, pending.counted_bytes))

    def _on_done(self, size: int, task: asyncio.Task[None]) -> None:
        """Start the next request. After an error nothing starts: the error stops the worker."""
        self._free += 1
        self._free_bytes += size
        if task.cancelled() or task.exception() is None:
            self.dispatch()

    async def _resume_when_available(self) -> None:
        await self._availability.wait_until_available(self.api)
        self._waiting_for_api = None
        self.dispatch()
