"""Builds the sinks of a process from its settings, and runs them until a signal stops them."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import TYPE_CHECKING

from contracts.metrics.counts import Counts
from contracts.metrics.sink import CATALOGUE
from services.runtime.adapters import uniform, utc_now
from services.runtime.call_thread import CallThread
from services.runtime.worker.backpressure import Backpressure
from services.runtime.worker.handler import WorkerLimits
from services.runtime.worker.newest_record import SMALL_QUEUE, newest_record
from services.runtime.worker.process import run_workers
from services.runtime.worker.subscription import member_options, subscription
from services.runtime.worker.worker import Worker
from services.sink.dead_letters import DeadLetters
from services.sink.handler import SinkDependencies, SinkHandler
from services.sink.plan import Planner
from services.sink.retried_store import RetriedStore
from services.sink.stores import store_factory, store_name
from services.sink.takeover import known_offsets

if TYPE_CHECKING:
    from contracts import Suite
    from contracts.sinks import SinkStore
    from services.runtime.kafka.interfaces import Kafka
    from services.sink.partition import SinkPartition
    from services.sink.settings import SinkSettings

log = logging.getLogger(__name__)

NAME, READER, ADMIN = "sink", "sink-newest", "sink-offsets"
"""The names of the Kafka clients."""
COMMIT_EVERY = timedelta(seconds=0.5)
REPORT_EVERY = timedelta(seconds=5)
CALLS = 3
"""The number of calls of a store that may wait for each other: a write, the positions, the removal of expired rows."""
DRAIN = timedelta(seconds=2)
"""The time for which a revoked partition waits for the current write."""


def stores(settings: SinkSettings, suite: Suite) -> dict[str, SinkStore]:
    """Return the store of each state, unconnected. Raises a PermanentError for settings that cannot work."""
    url = settings.url()
    factory = store_factory(url, settings.sink_store)
    return {name: factory(url, settings.target(state)) for name, (_, state) in settings.states(suite).items()}


def groups(settings: SinkSettings, suite: Suite) -> dict[str, str]:
    """Return the consumer group of each state."""
    first = settings.group or f"sink-{store_name(settings.url(), settings.sink_store)}"
    return {name: f"{first}-{name}" for name in settings.states(suite)}


async def serve(settings: SinkSettings, suite: Suite, kafka: Kafka) -> None:
    """Run a sink for each state until SIGTERM or SIGINT.

    Raises a StateloopError, or a group of them, if one of them cannot work.
    """
    counts = Counts(CATALOGUE)
    opened, clock = stores(settings, suite), asyncio.get_running_loop().time
    group_of = groups(settings, suite)
    async with AsyncExitStack() as stack:
        producer = kafka.producer(NAME)
        stack.push_async_callback(producer.close)
        admin, calls = kafka.admin(ADMIN), CallThread(ADMIN)  # the client stays: it closes no sooner than its requests
        stack.callback(calls.close)
        workers: dict[str, Worker[SinkPartition]] = {}
        for name, (application, state) in settings.states(suite).items():
            reader = kafka.reader(READER, group=group_of[name], options=SMALL_QUEUE, log=log)
            stack.push_async_callback(reader.close)
            subscribed = subscription(
                settings,
                kafka,
                application,
                group=group_of[name],
                topics=(state.topic, application.topics.dead_letters),
                drain=DRAIN,
                options=member_options(settings.client()),
            )
            dependencies = SinkDependencies(
                state=name,
                batch=settings.sink_batch,
                consumer=kafka.consumer(NAME, subscribed),
                store=RetriedStore(name, opened[name], settings.sink_timeout, counts, clock, uniform),
                planner=Planner(state, settings.target(state).windows, settings.retention(state)),
                dead_letters=DeadLetters(producer, application.topics.dead_letters),
                counts=counts,
                newest=newest_record(reader, state.topic),
                offsets=known_offsets(admin, calls, group_of[name], state.topic),
                now=utc_now,
                clock=clock,
            )
            workers[name] = worker_of(dependencies, settings)
        await run_workers(workers, counts, settings.http_host, settings.http_port)


def worker_of(
    dependencies: SinkDependencies, settings: SinkSettings, *, report_every: timedelta = REPORT_EVERY
) -> Worker[SinkPartition]:
    """Return a worker that writes the records of one state."""
    backpressure = Backpressure(settings.unfinished, settings.unfinished_bytes)
    limits = WorkerLimits(
        batch=settings.sink_batch,
        uncommitted=settings.unfinished,
        commit_every=COMMIT_EVERY,
        drain=DRAIN,
        stop_within=settings.stop_within,
        report_every=report_every,
        stuck_after=max(settings.stuck_after, CALLS * settings.sink_timeout),
    )
    handler = SinkHandler(dependencies, backpressure)
    return Worker(handler, dependencies.consumer, limits, backpressure, dependencies.counts, dependencies.clock)
