"""The main path of a derive worker: write the records that follow from snapshots, then their offsets."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from copy import deepcopy
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import override

from contracts.metrics import derive as metrics
from services.alerts.evaluator import AlertEvaluator
from services.derive.batch import MOST_FAILURES, DerivedBatch
from services.derive.derive import derived_of_present
from services.derive.partition import DerivePartition
from services.derive.topics import check_partitions
from services.runtime.errors import DeliveryFailedError
from services.runtime.kafka.membership import FRESH_S
from services.runtime.worker.alarm import Alarm
from services.runtime.worker.handler import Handler, WorkerMetrics

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from contracts import Application, Derived
    from contracts.metrics import Metric
    from contracts.metrics.counts import Counts
    from contracts.records.record import Record
    from contracts.wire import Snapshot
    from services.alerts.reader import AlertReader
    from services.alerts.tables import Tables
    from services.runtime.kafka.interfaces import FencedGroupConsumer, Producer
    from services.runtime.kafka.values import Output
    from services.runtime.worker.backpressure import Backpressure
    from services.runtime.worker.partition import AssignedPartition, CreateTask

log = logging.getLogger(__name__)

FOLLOW_S = 0.05
"""The pause between two looks at the tables."""
PROGRESS_S = 1.0
"""The pause between two looks at the progress of the job."""
RETRY_S = 0.1
"""The pause before a write is attempted again."""
COUNTERS = (metrics.SNAPSHOTS, metrics.ALERTS, metrics.WRITTEN, metrics.ROWS, metrics.COMMITS, metrics.KAFKA_ERRORS)
"""The counters of progress. Kafka's errors count: during an outage, attempts are the work."""


class DeriveDependencies(NamedTuple):
    """The dependencies of the worker of one application."""

    application: Application
    consumer: FencedGroupConsumer
    producer: Producer
    partition_counts: Callable[[], Awaitable[Mapping[str, int]]]
    """Waits for the topics, and returns the number of partitions of each."""
    tables: Tables
    alerts: AlertReader | None
    """What evaluation by reference tables reads; None for an application without tables."""
    counts: Counts
    clock: Callable[[], float]
    is_replay: bool


class DeriveHandler(Handler[DerivePartition]):
    """Writes the derived states and alerts of one application.

    A worker that was frozen until others had its partitions must not replace their records. So it writes only if it was
    known to own the partition less than 3 s ago, and the producer drops what it has not sent 5 s later: that is less
    than the time after which others get the partitions.
    """

    def __init__(self, dependencies: DeriveDependencies, backpressure: Backpressure) -> None:
        self._application = dependencies.application
        self._consumer = dependencies.consumer
        self._producer = dependencies.producer
        self._read_partition_counts = dependencies.partition_counts
        self._tables = dependencies.tables
        self._alerts = dependencies.alerts
        self._counts = dependencies.counts
        self._backpressure = backpressure
        self._clock = dependencies.clock
        self._is_replay = dependencies.is_replay
        self._name = dependencies.application.name
        self._partition_counts: Mapping[str, int] = {}
        self._states: list[DerivePartition] = []
        self._alarm = Alarm.in_a_row(MOST_FAILURES)
        self._attempts = 0
        self.loop_metrics = WorkerMetrics(metrics.COMMITS, metrics.KAFKA_ERRORS, metrics.LAG, (self._name,))
        for metric in metrics.CATALOGUE:
            if metric.kind == "counter":  # each is there from the beginning
                self._counts.add(metric, self._name, by=0)

    # Handler

    @override
    async def start(self) -> None:
        """Wait for the topics, and read the tables to their end."""
        self._partition_counts = await self._read_partition_counts()
        check_partitions(self._application, self._partition_counts)
        if self._alerts is not None:
            await self._alerts.start()

    @override
    def begin(self, spawn: CreateTask) -> None:
        """Follow the tables and the progress of the job."""
        if self._alerts is not None:
            _ = spawn(self._follow_tables(self._alerts))
            _ = spawn(self._follow_progress(self._alerts))

    @override
    async def open(self, partition: AssignedPartition) -> DerivePartition:
        """Restore the present states and the alerts of a partition."""
        state = DerivePartition(partition, await self._first_offset(partition))
        if self._alerts is not None:
            began = self._clock()
            found = await self._alerts.open(partition, state.start)
            seconds = round(self._clock() - began, 2)
            facts = {"partition": partition.number, "states": found.states.count(), "seconds": seconds}
            log.info("restored", extra={"facts": facts})
            if partition.is_closing:
                found.states.close()
                return state
            state.evaluator = AlertEvaluator(
                self._application, self._tables, found, self._partition_counts, self._derive, is_replay=self._is_replay
            )
            await self._reach(self._alerts, [state])
        self._states.append(state)
        return state

    @override
    async def process(self, state: DerivePartition, records: Sequence[Record]) -> None:
        """Write what follows from these snapshots, then from changed rules, pending alerts and expired windows."""
        if records:
            with self._backpressure.counted(records):
                await self._settle(state, records)
        if state.evaluator is not None:
            while await self._work(state, state.evaluator) and not state.partition.waiting:
                """There is more to do."""

    @override
    def abandon(self, state: DerivePartition) -> None:
        if state in self._states:
            self._states.remove(state)
        if state.evaluator is not None:
            state.evaluator.close()

    @override
    def stop(self) -> None:
        """Drop what is not sent: others get the partitions soon."""
        self._producer.drop_unsent()
        if self._alerts is not None:
            self._alerts.close()

    @override
    def progress(self) -> float:
        read = 0 if self._alerts is None else self._alerts.attempts
        return self._attempts + read + sum(self._counts.get(metric, self._name) for metric in COUNTERS)

    @override
    async def close(self) -> None:
        if self._alerts is not None:
            self._alerts.close()

    @property
    def is_busy(self) -> bool:
        """Whether changed rules are being evaluated."""
        return any(state.evaluator is not None and state.evaluator.is_busy for state in self._states)

    # Beside the partitions

    async def _follow_tables(self, alerts: AlertReader) -> None:
        while True:
            changes = await alerts.follow()
            for evaluator in [state.evaluator for state in self._states if state.evaluator is not None]:
                for change in changes:
                    evaluator.change_row(change)
            self._counts.add(metrics.ROWS, self._name, by=len(changes))
            await asyncio.sleep(0 if changes else FOLLOW_S)

    async def _follow_progress(self, alerts: AlertReader) -> None:
        while True:
            states = list(self._states)
            await self._reach(alerts, states)
            await asyncio.sleep(PROGRESS_S if states else FOLLOW_S)

    async def _reach(self, alerts: AlertReader, states: Sequence[DerivePartition]) -> None:
        progress = await alerts.progress([state.partition.number for state in states])
        for state in states:
            if progress is not None and state.evaluator is not None:
                state.evaluator.reach(progress.get(state.partition.number))

    # One partition

    async def _first_offset(self, partition: AssignedPartition) -> int:
        """Wait for the offset from which on a partition is read, and note it: an earlier record begins it anew."""
        while True:
            found = await self._consumer.next_offsets([partition.number])
            if partition.first is None:
                partition.first = found.get(partition.number)
            if partition.first is not None:
                return partition.first
            await asyncio.sleep(RETRY_S)

    async def _settle(self, state: DerivePartition, records: Sequence[Record]) -> None:
        """Write what follows from snapshots, if need be several times. If the partition closes, that may be undone."""
        while await self._is_restored(state):
            alarm, values = deepcopy(self._alarm), self._tables.values
            batch = DerivedBatch(self._application, records, state.evaluator, self._partition_counts, values, alarm)
            outputs = await self._unreported(state, batch.outputs)
            if outputs is not None and await self._send(state, outputs):
                state.accept(records[-1].offset)
                self._alarm = alarm
                self._count(batch.counts)
                return
            state.discard()
            if state.partition.is_closing:
                return
            await asyncio.sleep(RETRY_S)

    async def _work(self, state: DerivePartition, evaluator: AlertEvaluator) -> bool:
        """Write a slice of what follows from other causes than snapshots; return whether there is more.

        The evaluated snapshots are committed before: else a worker that continues before them would find results of
        states that it does not know.
        """
        if state.partition.is_closing or not await self._is_restored(state):
            return False
        count = self._partition_counts[self._application.topics.snapshots]
        is_busy, bad_rows = evaluator.is_busy, self._tables.dead_letters(state.partition.number, count)
        outputs = await self._unreported(state, [*evaluator.work(), *bad_rows])
        if outputs is None or ((outputs or is_busy) and not await self._send(state, outputs, is_after_commit=True)):
            state.discard()
            await asyncio.sleep(RETRY_S)
            return False
        evaluator.accept()
        self._tables.reported(bad_rows)
        self._count(self._counted(outputs))
        await asyncio.sleep(0)  # a slice without results waits for nothing
        return evaluator.is_busy

    async def _is_restored(self, state: DerivePartition) -> bool:
        """Read the alerts again after a write of unknown result; return False if the partition closed meanwhile."""
        if state.is_unsure and self._alerts is not None and state.evaluator is not None:
            await self._alerts.restore_alerts(state.partition, state.evaluator.partition)
            state.is_unsure = state.partition.is_closing
        return not state.is_unsure

    async def _unreported(self, state: DerivePartition, outputs: list[Output]) -> list[Output] | None:
        return outputs if self._alerts is None else await self._alerts.unreported(state.partition, outputs)

    async def _send(self, state: DerivePartition, outputs: Sequence[Output], *, is_after_commit: bool = False) -> bool:
        """Write records, and wait for their acknowledgement. Return False if some may not be written."""
        self._attempts += 1
        if not await self._is_owned(state, is_after_commit=is_after_commit):
            return False
        try:
            await self._producer.send(outputs)
        except DeliveryFailedError as error:
            if not error.is_dropped:
                raise
            state.is_unsure, state.is_doubted = state.evaluator is not None, True
            return False
        return True

    async def _is_owned(self, state: DerivePartition, *, is_after_commit: bool) -> bool:
        """Return whether this worker was known to own the partition just now; commit its position to find out."""
        number = state.partition.number
        is_needed = state.is_doubted or (is_after_commit and not state.is_committed)
        while is_needed or self._clock() - self._consumer.proven_at(number) > FRESH_S:
            position = state.position
            if not await self._consumer.prove(number, position):
                state.is_doubted = True
                return False
            state.committed, state.is_doubted, is_needed = position, False, False
        return True

    def _derive(self, declared: Derived, snapshots: Iterable[Snapshot]) -> Iterator[Output]:
        return derived_of_present(self._application, declared, snapshots, self._partition_counts, self._tables.values)

    def _counted(self, outputs: Iterable[Output]) -> dict[Metric, int]:
        """The numbers of alerts and of derived records."""
        of_topic, topics = Counter(output.topic for output in outputs), self._application.topics
        return {
            metrics.ALERTS: sum(of_topic[topics.derived(alerts.name)] for alerts in self._application.alerts),
            metrics.WRITTEN: sum(of_topic[topics.derived(derived.name)] for derived in self._application.derived),
        }

    def _count(self, counts: Mapping[Metric, int]) -> None:
        for metric, by in counts.items():
            self._counts.add(metric, self._name, by=by)
