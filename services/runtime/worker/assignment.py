"""The partitions that are assigned to a worker."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import override

from services.runtime.kafka.interfaces import RebalanceListener
from services.runtime.worker.partition import AssignedPartition, finished

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import timedelta

    from contracts.metrics.counts import Counts
    from contracts.records.record import Record
    from services.runtime.worker.backpressure import Backpressure
    from services.runtime.worker.handler import WorkerLimits, WorkerMetrics
    from services.runtime.worker.partition import CreateTask


class AssignmentFigures(NamedTuple):
    """Numbers over the assigned partitions."""

    partitions: int
    waiting: int
    """Records that wait to be processed."""
    tasks: int
    """Running tasks."""
    full: int
    """Partitions that are read as far beyond an unfinished offset as the limits allow."""
    uncommitted: int


class Assignment(RebalanceListener):
    """One AssignedPartition per assigned partition, each with a running loop."""

    def __init__(  # noqa: PLR0913, PLR0917  # the parts that it connects
        self,
        limits: WorkerLimits,
        backpressure: Backpressure,
        counts: Counts,
        metrics: WorkerMetrics,
        create_task: CreateTask,
        open_partition: Callable[[AssignedPartition], None],
        drop_state: Callable[[AssignedPartition], None],
    ) -> None:
        self._limits = limits
        self._backpressure = backpressure
        self._counts = counts
        self._metrics = metrics
        self._create_task = create_task
        self._open = open_partition
        self._drop_state = drop_state
        self._partitions: dict[int, AssignedPartition] = {}
        self._is_draining = False
        self._seeks: dict[int, int] = {}
        """The offsets from which to read partitions again. Until then, what is read of them is dropped."""
        self.is_member = False
        """Whether the group has assigned partitions to this worker, possibly none."""
        self._changed = asyncio.Event()
        """A position was committed, or a partition was revoked."""

    # RebalanceListener

    @override
    def on_assigned(self, partitions: list[int]) -> None:
        """Start the work on each of these."""
        self.is_member = True
        for number in partitions:
            self._create(number)

    @override
    async def on_revoked(self, partitions: list[int]) -> dict[int, int]:
        """Wait a limited time for the work in progress, abandon the rest, and return the positions to commit."""
        revoked = {number: self._partitions[number] for number in partitions if number in self._partitions}
        for partition in revoked.values():
            partition.close()
        self._forget_seeks(partitions)
        await finished(list(revoked.values()), self._limits.drain.total_seconds())
        positions = _positions(revoked)
        for partition in revoked.values():  # one may be assigned again by now, as a new object
            self._abandon(partition)
        self._changed.set()
        return positions

    @override
    def on_lost(self, partitions: list[int]) -> None:
        """Abandon these partitions."""
        for number in partitions:
            if partition := self._partitions.get(number):
                self._abandon(partition)
        self._forget_seeks(partitions)
        self._changed.set()

    @override
    def on_committed(self, positions: dict[int, int]) -> None:
        """Note the positions that the broker has confirmed."""
        self._counts.add(self._metrics.commits, *self._metrics.labels)
        for number, position in positions.items():
            if partition := self._partitions.get(number):
                partition.confirm(position)
        self._changed.set()

    @override
    def on_error(self) -> None:
        """Count the error; the log has its text."""
        self._counts.add(self._metrics.kafka_errors, *self._metrics.labels)

    # Reading and committing

    def route(self, records: Iterable[Record]) -> None:
        """Pass each record to its partition; drop it if the partition is revoked, or to be read again."""
        count = size = 0
        for record in records:
            partition = self._partitions.get(record.partition)
            if partition is None:
                continue
            if not partition.put(record):  # it went back: the topic was recreated, or the offset reset
                self._create(record.partition).put(record)
            count, size = count + 1, size + record.size
        if count:
            self._backpressure.add(size, count)

    def positions(self) -> dict[int, int]:
        """Return the positions to commit now."""
        return _positions(self._partitions)

    def full(self) -> frozenset[int]:
        """Return the partitions that were read as far beyond an unfinished offset as the limits allow.

        The records that wait count: a partition that takes long to open must not fill the memory of all.
        """
        most = self._limits.uncommitted
        partitions = self._partitions.items()
        return frozenset(
            number for number, partition in partitions if partition.uncommitted + partition.waiting >= most
        )

    @property
    def seeks(self) -> Mapping[int, int]:
        """The offsets from which partitions are to be read again."""
        return self._seeks

    def sought(self, offsets: Mapping[int, int]) -> None:
        """Note that the consumer reads these partitions from these offsets on."""
        for number, offset in offsets.items():
            if self._seeks.get(number) == offset:
                self._create(number, offset)

    # Shutdown

    async def drain(self, within: timedelta) -> None:
        """Process no further record, wait a limited time for the work in progress, and abandon the rest."""
        self._is_draining = True
        partitions = list(self._partitions.values())
        for partition in partitions:
            partition.close()
        await finished(partitions, within.total_seconds())
        for partition in partitions:
            self._drop_work(partition)

    async def wait_for_commits(self, within: timedelta) -> None:
        """Wait a limited time until the broker has confirmed all positions.

        The broker refuses commits during a rebalance. A worker that left then would have finished work repeated.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(within.total_seconds()):
                while not all(partition.is_committed for partition in self._partitions.values()):
                    self._changed.clear()
                    await self._changed.wait()

    def abandon_all(self) -> None:
        """Abandon the work on all partitions. Those that are assigned later get none."""
        self._is_draining = True
        for partition in list(self._partitions.values()):
            self._drop_work(partition)

    # Metrics

    def figures(self) -> AssignmentFigures:
        """Return the numbers of now."""
        partitions = self._partitions.values()
        return AssignmentFigures(
            partitions=len(partitions),
            waiting=sum(partition.waiting for partition in partitions),
            tasks=sum(len(partition.tasks) for partition in partitions),
            full=len(self.full()),
            uncommitted=sum(partition.uncommitted for partition in partitions),
        )

    def _create(self, number: int, start: int | None = None) -> AssignedPartition:
        """Create the object of a partition. It replaces the one that exists."""
        if former := self._partitions.get(number):
            self._abandon(former)
        self._seeks.pop(number, None)
        partition = AssignedPartition(number, self._backpressure, self._create_task, self._reopen, start)
        self._partitions[number] = partition
        if self._is_draining:
            partition.close()
        else:
            self._open(partition)
        return partition

    def _reopen(self, partition: AssignedPartition, offset: int) -> None:
        if self._partitions.get(partition.number) is partition:
            stays = not partition.is_closing  # one that is revoked is read by its next owner
            self._abandon(partition)
            if stays:
                self._seeks[partition.number] = offset

    def _abandon(self, partition: AssignedPartition) -> None:
        if self._partitions.get(partition.number) is partition:
            del self._partitions[partition.number]
        self._drop_work(partition)

    def _drop_work(self, partition: AssignedPartition) -> None:
        partition.close()
        self._drop_state(partition)
        partition.abandon()

    def _forget_seeks(self, partitions: Iterable[int]) -> None:
        for number in partitions:
            self._seeks.pop(number, None)


def _positions(partitions: Mapping[int, AssignedPartition]) -> dict[int, int]:
    """The positions to commit, without partitions of which nothing was processed."""
    positions = {number: partition.position for number, partition in partitions.items()}
    return {number: position for number, position in positions.items() if position is not None}
