"""One assignment of one partition: the records that wait, the offsets in progress, and the running tasks."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from services.runtime.worker.offsets import Offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine
    from datetime import timedelta

    from contracts.records.record import Record
    from services.runtime.worker.backpressure import Backpressure

    CreateTask = Callable[[Coroutine[None, None, None]], asyncio.Task[None]]
    Reopen = Callable[["AssignedPartition", int], None]

TAKEN_BYTES = 4 << 20
"""The size of records from which on no further one is taken with them."""


class AssignedPartition:
    """A partition from its assignment until it is revoked or reopened.

    What finishes later finishes in an object whose position is never committed. When the partition is assigned again,
    everything unfinished is processed again.
    """

    def __init__(
        self,
        number: int,
        backpressure: Backpressure,
        create_task: CreateTask,
        reopen: Reopen,
        start: int | None = None,
    ) -> None:
        self.number = number
        self.backpressure = backpressure
        self.start = start
        """The offset from which it was reopened; None for a partition as the group assigned it."""
        self.first = start
        """The offset from which on no record is missing; None before it is known: no later than the first record."""
        self.is_closing = False
        """Whether it is being revoked, or the worker stops: no further record is processed."""
        self.is_abandoned = False
        """Whether it was revoked, lost or reopened: nothing that finishes counts any more."""
        self.tasks: set[asyncio.Task[None]] = set()
        """The running tasks that the handler started for it."""
        self.loop: asyncio.Task[None] | None = None
        """The task that passes its records to the handler."""
        self._create_task = create_task
        self._reopen = reopen
        self._offsets = Offsets()
        self._last_offset = -1
        self._committed: int | None = None
        self._records: deque[Record] = deque()
        self._arrived = asyncio.Event()

    # For the handler

    def track(self, offset: int, parts: int) -> None:
        """Track an offset until its parts are finished: see `Offsets.track`."""
        self._offsets.track(offset, parts)

    def finish(self, offset: int) -> bool:
        """Finish one part of an offset; return whether it was the last part."""
        return self._offsets.finish(offset)

    def add_parts(self, offset: int, count: int) -> bool:
        """Add parts to an offset, or remove some: see `Offsets.add_parts`."""
        return self._offsets.add_parts(offset, count)

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run a task of this partition. It is cancelled if it outlasts the assignment; an error stops the worker."""
        task = self._create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def reopen(self, offset: int) -> None:
        """Read the partition again from an offset on; 0 is the beginning. Nothing of this object is committed."""
        self._offsets = Offsets()
        self._reopen(self, offset)

    # For the worker

    @property
    def position(self) -> int | None:
        """The offset to commit; None before the first record."""
        return self._offsets.position

    @property
    def uncommitted(self) -> int:
        """The number of offsets between the position and the largest one that is tracked."""
        return self._offsets.span

    @property
    def waiting(self) -> int:
        """The number of records that wait to be processed."""
        return len(self._records)

    def confirm(self, position: int) -> None:
        """Note the position that the broker has confirmed."""
        self._committed = position

    @property
    def is_committed(self) -> bool:
        """Whether the broker has confirmed the current position; True before there is one."""
        return self._offsets.position in {None, self._committed}

    def put(self, record: Record) -> bool:
        """Add a record that counts as unfinished. Return False if the partition went back: this object is obsolete.

        It has gone back too if its first record is before the offset from which it was to be read.
        """
        if record.offset <= self._last_offset or (self.first is not None and record.offset < self.first):
            return False
        self._last_offset = record.offset
        if self.first is None:
            self.first = record.offset
        self._records.append(record)
        self._arrived.set()
        return True

    async def take(self, most: int, within: timedelta | None = None) -> list[Record]:
        """Take the oldest records, at most this many, with some MiB; wait until there is one, or for some time.

        Return an empty list after that time, and if the partition is closing. The records no longer count as
        unfinished: the handler counts what it keeps.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(None if within is None else within.total_seconds()):
                while not (self._records or self.is_closing):
                    self._arrived.clear()
                    await self._arrived.wait()
        if self.is_closing or not self._records:
            return []
        records = [self._records.popleft()]
        size = records[0].size
        while self._records and len(records) < most and size < TAKEN_BYTES:
            records.append(record := self._records.popleft())
            size += record.size
        self._release(records)
        return records

    def close(self) -> None:
        """Process no further record."""
        self.is_closing = True
        self._arrived.set()

    def abandon(self) -> None:
        """Drop the waiting records, and cancel the tasks."""
        self.close()
        self.is_abandoned = True
        self._release(self._records)
        self._records.clear()
        for task in self.running:
            task.cancel()

    @property
    def running(self) -> list[asyncio.Task[None]]:
        """The tasks, and the loop, that have not ended."""
        loop = [self.loop] if self.loop is not None and not self.loop.done() else []
        return [*self.tasks, *loop]

    def _release(self, records: Collection[Record]) -> None:
        self.backpressure.release(sum(record.size for record in records), len(records))


async def finished(partitions: list[AssignedPartition], within_s: float) -> None:
    """Wait a limited time for the running tasks of partitions, and for those that start meanwhile."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while tasks := [task for partition in partitions for task in partition.running]:
                await asyncio.wait(tasks)
