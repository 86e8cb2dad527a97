"""Builds a worker from its settings, and runs it until a signal stops it."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from contracts.metrics.counts import Counts
from contracts.metrics.worker import CATALOGUE
from services.enrichment.calls.assembly import assemble, utc_now
from services.enrichment.calls.headers import reveal
from services.enrichment.calls.transport import Bounds, HttpTransport
from services.enrichment.dependencies import Dependencies
from services.enrichment.errors import TracingMissingError
from services.enrichment.health import patience
from services.enrichment.monitoring import MonitoredWorker, Monitoring
from services.enrichment.rereader import KafkaRereader
from services.enrichment.worker import Worker
from services.runtime.monitoring import serving
from services.runtime.publisher import KafkaPublisher
from services.runtime.source import KafkaSource
from services.runtime.topic_check import TopicCheck
from services.runtime.topic_owners import TopicOwners

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contracts import Application, Policy
    from services.enrichment.settings import EnrichmentSettings
    from services.enrichment.tracing import Tracing

log = logging.getLogger(__name__)

NAME = "enrichment"
"""Of its Kafka clients."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
NEW_OBJECTS = 300_000
"""The threshold of the youngest generation. A thousand running calls of aiohttp are a hundred thousand objects; with
Python's default of 700 the collector took 40 % of the CPU."""
YOUNG_COLLECTIONS, OLD_COLLECTIONS = 50, 100
"""How many collections of one generation precede one of the next."""


async def serve(
    settings: EnrichmentSettings, groups: Mapping[str, Application], tracing: Tracing | None = None
) -> None:
    """Run a worker for each application until SIGTERM or SIGINT, each a member of the group that is its key.

    Raises a StateloopError, or a group of them, if one of them cannot work.
    """
    async with AsyncExitStack() as stack:
        if tracing:
            stack.callback(tracing.close)
        workers: list[Worker] = []
        monitored: dict[str, MonitoredWorker] = {}
        for group, one in groups.items():
            dependencies = await _dependencies(settings, group, one, tracing, stack)
            workers.append(Worker(dependencies))
            limit = patience(settings.stuck_after, one.apis.values())
            monitored[one.name] = MonitoredWorker(workers[-1], dependencies.counts, limit)
        loop = asyncio.get_running_loop()
        port = stack.enter_context(serving(Monitoring(monitored, loop), settings.http_host, settings.http_port))
        if port is not None:
            log.info("endpoints", extra={"facts": {"url": f"http://{settings.http_host}:{port}"}})
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, _stop, workers)
        async with asyncio.TaskGroup() as tasks:
            for worker in workers:
                tasks.create_task(worker.run())


def _stop(workers: Sequence[Worker]) -> None:
    for worker in workers:
        worker.stop()


async def _dependencies(
    settings: EnrichmentSettings, group: str, application: Application, tracing: Tracing | None, stack: AsyncExitStack
) -> Dependencies:
    """Open the dependencies of the worker; the stack closes them."""
    counts, topic = Counts(CATALOGUE), application.topics.snapshots
    transports = {
        name: await stack.enter_async_context(_transport(name, url, settings, application.apis[name], tracing))
        for name, url in settings.base_urls((application,)).items()
    }
    publisher = KafkaPublisher(settings.client(), NAME, asyncio.get_running_loop())
    stack.push_async_callback(publisher.close)
    rereader = KafkaRereader(settings.client(), topic=topic, group=group)
    stack.push_async_callback(rereader.close)
    calls = assemble(application, transports, counts)
    stack.callback(calls.close)
    return Dependencies(
        application=application,
        settings=settings,
        source=_source(settings, group, application),
        rereader=rereader,
        caller=tracing.traced(calls.caller) if tracing else calls.caller,
        availability=calls.availability,
        publisher=publisher,
        counts=counts,
        now=utc_now,
        clock=time.monotonic,
    )


def _source(settings: EnrichmentSettings, group: str, application: Application) -> KafkaSource:
    topics = application.topics
    owners = TopicOwners(application, settings.client(), log.warning)
    return KafkaSource(
        settings.member(),
        NAME,
        group=group,
        topic=topics.snapshots,
        batch=settings.max_poll_records,
        drain=settings.drain,
        check=TopicCheck((topics.snapshots, topics.feedback, topics.dead_letters), settings.kafka, owners.check),
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


def _transport(
    api: str, url: str, settings: EnrichmentSettings, policy: Policy, tracing: Tracing | None
) -> HttpTransport:
    bounds = Bounds(
        connections=policy.concurrency,
        largest=policy.largest_answer,
        redirects=policy.redirects,
        allowed=settings.allowed_networks,
        headers=reveal(settings.api_headers.get(api, {})),
    )
    return HttpTransport(url, bounds, clock=time.monotonic, span=tracing.call if tracing else None)


def tune_gc() -> None:
    """Collect rarely, and never the objects that exist now. The worker leaves no reference cycles with responses."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, YOUNG_COLLECTIONS, OLD_COLLECTIONS)
