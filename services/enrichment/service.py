"""Builds a worker from its settings, and runs it until a signal stops it."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from contracts.metrics.counts import Counts, LabelledCounts
from contracts.metrics.worker import CATALOGUE
from services.enrichment.calls.assembly import assemble, assemble_webhook, http_transport
from services.enrichment.dependencies import WorkerDependencies
from services.enrichment.errors import TracingMissingError
from services.enrichment.handler import EnrichmentHandler
from services.enrichment.planner import EnrichmentPlanner
from services.enrichment.webhooks import DeliveryPlanner
from services.runtime.adapters import utc_now
from services.runtime.worker.backpressure import Backpressure
from services.runtime.worker.handler import WorkerLimits
from services.runtime.worker.newest_record import SMALL_QUEUE, newest_record
from services.runtime.worker.process import run_workers
from services.runtime.worker.subscription import member_options, subscription
from services.runtime.worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contracts import Application, Policy, Webhook
    from services.enrichment.calls.assembly import ApiCalls
    from services.enrichment.calls.transport import HttpTransport
    from services.enrichment.partition_state import PartitionState
    from services.enrichment.planner import RequestPlanner
    from services.enrichment.settings import AlertDelivery, EnrichmentSettings
    from services.enrichment.tracing import Tracing
    from services.runtime.kafka.interfaces import Kafka

log = logging.getLogger(__name__)

NAME = "enrichment"
"""The name of the Kafka clients."""
PLAN_BATCH = 256
"""The number of snapshots of a partition that are planned before other tasks run."""
NEW_OBJECTS = 300_000
"""The threshold of the youngest generation. A thousand running calls of aiohttp are a hundred thousand objects; with
Python's default of 700 the collector took 40 % of the CPU."""
YOUNG_COLLECTIONS, OLD_COLLECTIONS = 50, 100
"""The number of collections of one generation for each one of the next."""


async def serve(
    settings: EnrichmentSettings,
    groups: Mapping[str, Application],
    webhooks: Mapping[str, AlertDelivery],
    kafka: Kafka,
    tracing: Tracing | None = None,
) -> None:
    """Run a worker for each application, and for each webhook, until SIGTERM or SIGINT.

    Each is a member of the group that is its key. Raises a StateloopError, or a group of them, if one of them cannot
    work.
    """
    async with AsyncExitStack() as stack:
        if tracing:
            stack.callback(tracing.close)
        resources = _Resources(settings, kafka, stack, tracing)
        workers: dict[str, Worker[PartitionState]] = {}
        counted: list[tuple[dict[str, str], Counts]] = []

        def add(name: str, dependencies: WorkerDependencies, **labels: str) -> None:
            workers[name] = worker_of(dependencies)
            counted.append((labels, dependencies.counts))

        for group, one in groups.items():
            add(one.name, await _enrichments(resources, group, one), application=one.name)
        for group, (application, alerts, webhook) in webhooks.items():
            dependencies = await _deliveries(resources, group, application, alerts.name, webhook)
            add(alerts.name, dependencies, application=application.name, alerts=alerts.name)
        await run_workers(workers, LabelledCounts(counted), settings.http_host, settings.http_port)


def worker_of(dependencies: WorkerDependencies) -> Worker[PartitionState]:
    """Return a worker that answers the requests of its planner."""
    settings, apis = dependencies.settings, dependencies.planner.apis.values()
    backpressure = Backpressure(settings.unfinished, settings.unfinished_bytes, settings.max_deferred)
    limits = WorkerLimits(
        batch=PLAN_BATCH,
        uncommitted=settings.max_uncommitted,
        commit_every=settings.commit_every,
        drain=settings.drain,
        stop_within=settings.stop_within,
        report_every=settings.stats_every,
        stuck_after=patience(settings.stuck_after, settings.failure_trial_interval, apis),
    )
    handler = EnrichmentHandler(dependencies, backpressure)
    return Worker(handler, dependencies.consumer, limits, backpressure, dependencies.counts, dependencies.clock)


def patience(stuck_after: timedelta, trial_interval: timedelta, policies: Iterable[Policy]) -> timedelta:
    """Return the longest time without progress: the setting, or twice the longest pause between calls of an API."""
    return max(stuck_after, *(2 * _longest_pause(policy, trial_interval) for policy in policies), timedelta(0))


def _longest_pause(policy: Policy, trial_interval: timedelta) -> timedelta:
    """The longest time between two calls of an API with pending requests, which may be suspended."""
    rest = policy.breaker.open_for if policy.breaker else timedelta(0)
    turn = policy.rate.per / policy.rate.calls if policy.rate else timedelta(0)
    return policy.timeout + max(policy.max_retry_after + policy.max_backoff, rest, trial_interval) + turn


class _Resources(NamedTuple):
    """The resources that the workers of a process share. The stack closes them."""

    settings: EnrichmentSettings
    kafka: Kafka
    stack: AsyncExitStack
    tracing: Tracing | None


async def _enrichments(resources: _Resources, group: str, application: Application) -> WorkerDependencies:
    """Open the dependencies of a worker that enriches an application's snapshots."""
    counts = Counts(CATALOGUE)
    transports = {api: await _transport(resources, api, policy) for api, policy in application.apis.items()}
    calls = assemble(application, transports, counts, limits=resources.settings.failure_limits)
    return await _dependencies(resources, group, application, EnrichmentPlanner(application, counts), calls, counts)


async def _deliveries(
    resources: _Resources, group: str, application: Application, alerts: str, webhook: Webhook
) -> WorkerDependencies:
    """Open the dependencies of a worker that delivers alerts of this name to their webhook."""
    counts, secret = Counts(CATALOGUE), resources.settings.webhook_secrets.get(webhook.api)
    transport = await _transport(resources, webhook.api, webhook.policy)
    limits = resources.settings.failure_limits
    calls = assemble_webhook(webhook, alerts, transport, counts, secret=secret, limits=limits)
    planner = DeliveryPlanner(application, alerts, webhook, counts)
    return await _dependencies(resources, group, application, planner, calls, counts)


async def _dependencies(  # noqa: PLR0913, PLR0917  # it connects these parts
    resources: _Resources,
    group: str,
    application: Application,
    planner: RequestPlanner,
    calls: ApiCalls,
    counts: Counts,
) -> WorkerDependencies:
    settings, kafka, stack, tracing = resources
    stack.callback(calls.close)
    producer = kafka.producer(NAME)
    stack.push_async_callback(producer.close)
    reader = kafka.reader(f"{NAME}-rereader", group=group, options=SMALL_QUEUE, log=log)
    stack.push_async_callback(reader.close)
    subscribed = subscription(
        settings,
        kafka,
        application,
        group=group,
        topics=planner.topics,
        drain=settings.drain,
        options=member_options(settings.client(), settings.group_protocol),
    )
    return WorkerDependencies(
        application=application,
        planner=planner,
        settings=settings,
        consumer=kafka.consumer(NAME, subscribed),
        reread=reader.at,
        newest=newest_record(reader, planner.topic),
        caller=tracing.traced(calls.caller) if tracing else calls.caller,
        availability=calls.availability,
        producer=producer,
        counts=counts,
        now=utc_now,
        clock=asyncio.get_running_loop().time,
    )


def open_tracing(settings: EnrichmentSettings, groups: Iterable[str]) -> Tracing | None:
    """Return the traces of the process, named for its groups, if they are on. Raises TracingMissingError."""
    if not settings.tracing:
        return None
    try:
        from services.enrichment.tracing import Tracing  # noqa: PLC0415  # an optional dependency
    except ImportError as error:
        raise TracingMissingError from error
    return Tracing("+".join(groups))


async def _transport(resources: _Resources, api: str, policy: Policy) -> HttpTransport:
    span = resources.tracing.call if resources.tracing else None
    return await resources.stack.enter_async_context(http_transport(resources.settings, api, policy, span))


def tune_gc() -> None:
    """Collect rarely, and never the objects that exist now. The worker leaves no reference cycles with responses."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, YOUNG_COLLECTIONS, OLD_COLLECTIONS)
