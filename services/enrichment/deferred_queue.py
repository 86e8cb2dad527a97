"""Defers the requests of an unavailable API: memory keeps only the offsets, and the snapshots are read again later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.runtime.kafka.values import Partition

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from contracts.planning.request import Request
    from contracts.records.record import Record
    from services.enrichment.dispatcher import Availability, Dispatcher
    from services.enrichment.partition_state import PartitionState
    from services.runtime.worker.backpressure import Backpressure
    from services.runtime.worker.partition import CreateTask

    Replan = Callable[[str, PartitionState, int, Record | None], None]
    Reread = Callable[[Partition, Sequence[int], Callable[[], bool]], Awaitable[Sequence[Record]]]
    """Reads single records, as `TopicReader.at` does."""

BATCH_SIZE = 256
"""The number of snapshots that are read and planned again before other tasks run."""
BATCHES_PER_PARTITION = 16
"""The number of batches of one partition that are planned again before the next partition's."""


class DeferredQueue:
    """The deferred requests of one API.

    While the API is unavailable and many requests are pending already, further requests are deferred. When the API is
    available again, their snapshots are read and planned again (`replan`), the oldest first, at the pace of the
    dispatcher. Until none is left, new requests are deferred too, so that they stay behind the earlier ones.
    """

    def __init__(  # noqa: PLR0913  # it connects these parts
        self,
        dispatcher: Dispatcher,
        availability: Availability,
        states: Collection[PartitionState],
        backpressure: Backpressure,
        *,
        topic: str,
        reread: Reread,
        create_task: CreateTask,
        replan: Replan,
    ) -> None:
        self._dispatcher = dispatcher
        self._availability = availability
        self._states = states
        self._backpressure = backpressure
        self._topic = topic
        self._reread = reread
        self._create_task = create_task
        self._replan = replan
        self._resuming: asyncio.Task[None] | None = None

    def defer(self, state: PartitionState, offset: int, request: Request) -> bool:
        """Defer a request if that is necessary; return whether it was deferred.

        A skipped request makes no call, and a coalesced one takes no memory: neither is deferred.
        """
        is_down = self._backpressure.is_high and not self._availability.is_available(self._dispatcher.api)
        if request.skipped is not None or not (is_down or self._resuming) or state.has_queued(request):
            return False
        state.defer(self._dispatcher.api, offset)
        self._ensure_resuming()
        return True

    def defer_excess(self) -> None:
        """Defer requests that the dispatcher queued before the API became unavailable, once reading has paused.

        The last ones are deferred, until the queue is low and the memory of the unfinished requests too.
        """
        api = self._dispatcher.api
        if self._availability.is_available(api):
            return
        deferred_in: set[PartitionState] = set()
        while (last := self._dispatcher.last) and (self._backpressure.is_high or not self._dispatcher.is_low.is_set()):
            pending, state = last
            state.defer_queued(api, pending)
            deferred_in.add(state)
        for state in deferred_in:
            state.sort_deferred(api)
            self._ensure_resuming()

    def close(self) -> None:
        """Resume no further request."""
        if self._resuming:
            self._resuming.cancel()

    def _ensure_resuming(self) -> None:
        if self._resuming is None:
            self._resuming = self._create_task(self._resume())

    async def _resume(self) -> None:
        while states := [
            state
            for state in self._states
            if state.has_deferred(self._dispatcher.api) and not state.partition.is_closing
        ]:
            for state in states:
                for _ in range(BATCHES_PER_PARTITION):
                    await self._dispatcher.is_low.wait()
                    await self._availability.wait_until_available(self._dispatcher.api)
                    await self._resume_batch(state)
        self._resuming = None

    async def _resume_batch(self, state: PartitionState) -> None:
        """Plan the oldest snapshots of a partition again. The partition may be revoked while they are read."""
        offsets = state.deferred_offsets(self._dispatcher.api, BATCH_SIZE)
        if not offsets:
            return
        place = Partition(self._topic, state.partition.number)
        records = await self._reread(place, offsets, lambda: not state.partition.is_closing)
        found = {record.offset: record for record in records}
        for offset in offsets:
            if not state.partition.is_closing:
                self._replan(self._dispatcher.api, state, offset, found.get(offset))
