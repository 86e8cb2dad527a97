"""Builds a derive worker as `stateloop derive` does, with the clients of a simulation."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from typing_extensions import override

from contracts.metrics.counts import Counts
from contracts.metrics.derive import CATALOGUE
from services.alerts.reader import AlertReader, AlertSources
from services.alerts.tables import Tables
from services.derive.handler import DeriveDependencies
from services.derive.service import DRAIN, DROP_AFTER, worker_of
from services.derive.topics import names, partition_counts
from services.runtime.job_progress import JobProgress
from services.runtime.kafka.interfaces import TopicSubscription
from services.runtime.topic_check import TopicCheck
from services.runtime.worker.subscription import fenced_member_options
from tests.simulation.blocking import ModelCalls
from tests.simulation.kafka.clients import ModelKafka
from tests.simulation.kafka.consumer import ModelGroupConsumer
from tests.simulation.kafka.network import POLL_S
from tests.simulation.network import Polls
from tests.simulation.worker import REPORT_EVERY

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from contracts import Application
    from contracts.records.record import Record
    from services.derive.partition import DerivePartition
    from services.runtime.worker.worker import Worker
    from tests.simulation.loop import SimulationLoop
    from tests.simulation.network import ProcessNetwork, WatchedBroker

IDLE_PAUSES = 4
"""The number of pauses between two polls after which a partition without snapshots is looked at."""
POLLS = Polls(POLL_S, 2.5)
"""After a longer pause than FRESH_S, a poll proves no membership."""
BATCH = 5


class Idle(timedelta):
    """The time after which a partition is looked at: short while something happens, and longer while nothing does.

    That of the product, always 0.05 s, would take most of a run.
    """

    network: ProcessNetwork

    @classmethod
    def of(cls, network: ProcessNetwork) -> Idle:
        """Return the time of a process, by the pauses of its clients."""
        idle = cls()
        idle.network = network
        return idle

    @override
    def total_seconds(self) -> float:
        return IDLE_PAUSES * self.network.pause_s


class PrefetchingConsumer(ModelGroupConsumer):
    """Returns records a moment after it has read them.

    A process that was frozen in between works on them before it finds out that it has lost their partition.
    """

    def __init__(self, broker: WatchedBroker, network: ProcessNetwork, subscription: TopicSubscription) -> None:
        super().__init__(broker, network, subscription)
        self._latency_s: Callable[[], float] = network.latency_s
        self._has_returned = asyncio.Event()
        self._has_returned.set()

    @override
    async def fetch(self, *, paused: bool, full: Collection[int], positions: Mapping[int, int]) -> list[Record]:
        records = await super().fetch(paused=paused, full=full, positions=positions)
        if records:
            self._has_returned.clear()
            await asyncio.sleep(self._latency_s())
            self._has_returned.set()
        return records

    @override
    async def next_offsets(self, partitions: Collection[int]) -> Mapping[int, int]:
        """See `GroupConsumer.next_offsets`. One thread makes all calls, so the records that were read come first."""
        while not self._has_returned.is_set():
            await self._has_returned.wait()
        return await super().next_offsets(partitions)


@dataclass(frozen=True)
class DeriveContext:
    """The parts of a derive worker."""

    application: Application
    loop: SimulationLoop
    broker: WatchedBroker
    network: ProcessNetwork


async def run_derive(context: DeriveContext, started: Callable[[Worker[DerivePartition]], None]) -> None:
    """Run a derive worker until it is stopped. `started` receives it. Raises a StateloopError if it cannot go on."""
    application, kafka, clock = context.application, ModelKafka(context.broker, context.network), context.loop.time
    topics, tables = application.topics, Tables(application)
    check = TopicCheck((topics.snapshots, *names(application)), "the broker", lambda: None, clock)
    subscription = TopicSubscription(
        group=application.derive_group,
        topic=topics.snapshots,
        batch=BATCH,
        drain=DRAIN,
        check=check,
        options=fenced_member_options({}),
    )
    sources = AlertSources(
        tables=kafka.blocking_reader("tables"),
        states=kafka.blocking_reader("alerts"),
        progress=JobProgress(kafka.admin("progress"), topics.snapshots).read,
        following=ModelCalls(context.network, *tables.topics),
        restoring=ModelCalls(context.network),
    )
    producer = kafka.producer("derive", DROP_AFTER)
    dependencies = DeriveDependencies(
        application=application,
        consumer=PrefetchingConsumer(context.broker, context.network, subscription),
        producer=producer,
        partition_counts=partial(partition_counts, kafka.admin("derive"), check, ModelCalls(context.network)),
        tables=tables,
        alerts=AlertReader(application, tables, sources),
        counts=Counts(CATALOGUE),
        clock=clock,
        is_replay=False,
    )
    worker = worker_of(dependencies, BATCH, report_every=REPORT_EVERY, idle=Idle.of(context.network))
    started(worker)
    try:
        await worker.run()
    finally:
        await producer.close()
