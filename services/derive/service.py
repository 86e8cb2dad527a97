"""Builds the workers of a process from its settings, and runs them until a signal stops them."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from contracts.metrics.counts import Counts
from contracts.metrics.derive import CATALOGUE
from services.alerts.reader import AlertReader, AlertSources
from services.alerts.tables import Tables
from services.derive.handler import FOLLOW_S, DeriveDependencies, DeriveHandler
from services.derive.topics import names, partition_counts
from services.runtime.call_thread import CallThread
from services.runtime.job_progress import JobProgress
from services.runtime.kafka.membership import FRESH_S
from services.runtime.kafka.producer import ROOM_S
from services.runtime.worker.backpressure import Backpressure
from services.runtime.worker.handler import WorkerLimits
from services.runtime.worker.process import run_workers
from services.runtime.worker.subscription import fenced_member_options, subscription
from services.runtime.worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contracts import Application
    from services.derive.partition import DerivePartition
    from services.derive.settings import DeriveSettings
    from services.runtime.kafka.interfaces import Kafka
    from services.runtime.topic_check import TopicCheck

log = logging.getLogger(__name__)

NAME = "derive"
"""The name of the Kafka clients."""
DROP_AFTER = timedelta(seconds=5)
"""The time after which the client drops an unsent record: a process that was frozen must not send it late. A record is
produced 4 s after a proof of membership at the latest, so it is sent before the session's timeout, or not at all."""
DRAIN = timedelta(seconds=FRESH_S + ROOM_S + 0.5) + DROP_AFTER
"""The time for which a revoked partition waits for the current write: afterwards none of its records is sent."""
STOP_WITHIN = timedelta(seconds=2)
COMMIT_EVERY = timedelta(milliseconds=100)
IDLE = timedelta(seconds=FOLLOW_S)
REPORT_EVERY = timedelta(seconds=5)
STUCK_AFTER = timedelta(seconds=120)
UNFINISHED, UNFINISHED_BYTES = 100_000, 64 << 20
"""The number of snapshots, and of their bytes, that wait at most."""
BATCHES = 4
"""The number of batches of a partition that wait at most."""


async def serve(settings: DeriveSettings, groups: Mapping[str, Application], kafka: Kafka) -> None:
    """Run a worker for each application, by its group, until SIGTERM or SIGINT.

    Raises a StateloopError, or a group of them, if one of them cannot work.
    """
    counts = Counts(CATALOGUE)
    async with AsyncExitStack() as stack:
        workers: dict[str, Worker[DerivePartition]] = {}
        for group, one in groups.items():
            producer = kafka.producer(NAME, DROP_AFTER)
            stack.push_async_callback(producer.close)
            tables = Tables(one)
            subscribed = subscription(
                settings,
                kafka,
                one,
                group=group,
                topics=(one.topics.snapshots, *names(one)),
                drain=DRAIN,
                options=fenced_member_options(settings.client()),
            )
            dependencies = DeriveDependencies(
                application=one,
                consumer=kafka.consumer(NAME, subscribed),
                producer=producer,
                partition_counts=partial(_partition_counts, kafka, subscribed.check),
                tables=tables,
                alerts=_alerts(kafka, one, tables, stack) if one.reads_tables else None,
                counts=counts,
                clock=asyncio.get_running_loop().time,
                is_replay=one.topics.replay,
            )
            workers[one.name] = worker_of(dependencies, settings.max_poll_records)
        await run_workers(workers, counts, settings.http_host, settings.http_port)


def worker_of(
    dependencies: DeriveDependencies,
    batch: int,
    *,
    commit_every: timedelta = COMMIT_EVERY,
    report_every: timedelta = REPORT_EVERY,
    idle: timedelta = IDLE,
) -> Worker[DerivePartition]:
    """Return a worker that processes this many snapshots of a partition at once.

    After `idle` it looks for changed rules, due alerts and expired windows in a partition without snapshots.
    """
    backpressure = Backpressure(UNFINISHED, UNFINISHED_BYTES)
    limits = WorkerLimits(
        batch=batch,
        uncommitted=BATCHES * batch,
        commit_every=commit_every,
        drain=DRAIN,
        stop_within=STOP_WITHIN,
        report_every=report_every,
        stuck_after=STUCK_AFTER,
        idle=None if dependencies.alerts is None else idle,
    )
    handler = DeriveHandler(dependencies, backpressure)
    return Worker(handler, dependencies.consumer, limits, backpressure, dependencies.counts, dependencies.clock)


async def _partition_counts(kafka: Kafka, check: TopicCheck) -> Mapping[str, int]:
    """Wait for the topics, and return the number of partitions of each."""
    thread = CallThread("topics")
    try:
        return await partition_counts(kafka.admin(NAME), check, thread)
    finally:
        thread.close()


def _alerts(kafka: Kafka, application: Application, tables: Tables, stack: AsyncExitStack) -> AlertReader:
    following, restoring = CallThread("following"), CallThread("restoring")
    for thread in (following, restoring):
        stack.callback(thread.close)
    sources = AlertSources(
        tables=kafka.blocking_reader("tables", log),
        states=kafka.blocking_reader("alerts", log),
        progress=JobProgress(kafka.admin("progress"), application.topics.snapshots).read,
        following=following,
        restoring=restoring,
    )
    return AlertReader(application, tables, sources)
