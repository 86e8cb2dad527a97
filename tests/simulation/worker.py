"""Builds a worker as `stateloop worker` does, with the clients, clocks and APIs of a simulation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from contracts.metrics.counts import Counts
from contracts.metrics.worker import CATALOGUE
from services.enrichment.calls.assembly import Runtime, assemble, assemble_webhook
from services.enrichment.dependencies import WorkerDependencies
from services.enrichment.planner import EnrichmentPlanner
from services.enrichment.service import worker_of
from services.enrichment.settings import EnrichmentSettings
from services.enrichment.webhooks import DeliveryPlanner
from services.runtime.kafka.interfaces import TopicSubscription
from services.runtime.topic_check import TopicCheck
from services.runtime.worker.newest_record import newest_record
from services.runtime.worker.subscription import MEMBER
from tests.simulation.api import StubTransport
from tests.simulation.kafka.clients import ModelKafka

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from random import Random

    from contracts import Alerts, Application, Webhook
    from services.enrichment.calls.assembly import ApiCalls
    from services.enrichment.partition_state import PartitionState
    from services.enrichment.planner import RequestPlanner
    from services.runtime.worker.worker import Worker
    from tests.simulation.api import ApiStub
    from tests.simulation.loop import SimulationLoop
    from tests.simulation.network import ProcessNetwork, WatchedBroker

REPORT_EVERY = timedelta(minutes=1)
"""The interval of the figures of all workers, which nothing here reads: each five seconds, they would take long."""


@cache
def worker_settings(
    unfinished: int, deferred: int, uncommitted: int, failures: int, in_flight: int
) -> EnrichmentSettings:
    """Return the settings of a worker with these limits."""
    limits = {"unfinished": unfinished, "max_deferred": deferred, "max_uncommitted": uncommitted}
    limits |= {"failure_window": failures, "failure_min_count": failures, "in_flight": in_flight}
    return EnrichmentSettings.model_validate({"application": "simulated", "stats_every": REPORT_EVERY, **limits})


@dataclass(frozen=True)
class WorkerContext:
    """The parts of a worker. `now` is its clock."""

    application: Application
    name: str
    settings: EnrichmentSettings
    loop: SimulationLoop
    broker: WatchedBroker
    network: ProcessNetwork
    api: ApiStub
    now: Callable[[], datetime]
    random: Random


class Work(NamedTuple):
    """What a worker plans and calls, and the consumer group in which it does."""

    group: str
    planner: RequestPlanner
    calls: ApiCalls
    counts: Counts


async def run_worker(context: WorkerContext, started: Callable[[Worker[PartitionState]], None]) -> None:
    """Run a worker until it is stopped. `started` receives it. Raises a StateloopError if it cannot go on."""
    application, counts = context.application, Counts(CATALOGUE)
    transports = {api: StubTransport(context.api, api, context.name) for api in application.apis}
    calls = assemble(application, transports, counts, _runtime(context), limits=context.settings.failure_limits)
    work = Work(application.enrichment_group, EnrichmentPlanner(application, counts), calls, counts)
    await _run(context, work, started)


async def run_webhook(
    context: WorkerContext, alerts: Alerts, webhook: Webhook, started: Callable[[Worker[PartitionState]], None]
) -> None:
    """Run a worker that delivers alerts, as `run_worker` does."""
    application, counts, limits = context.application, Counts(CATALOGUE), context.settings.failure_limits
    transport = StubTransport(context.api, webhook.api, context.name)
    calls = assemble_webhook(webhook, alerts.name, transport, counts, given=_runtime(context), limits=limits)
    planner = DeliveryPlanner(application, alerts.name, webhook, counts)
    await _run(context, Work(application.webhook_group(alerts), planner, calls, counts), started)


def _runtime(context: WorkerContext) -> Runtime:
    return Runtime(clock=context.loop.time, now=context.now, draw=context.random.uniform)


async def _run(context: WorkerContext, work: Work, started: Callable[[Worker[PartitionState]], None]) -> None:
    kafka, settings, planner = ModelKafka(context.broker, context.network), context.settings, work.planner
    producer, reader, clock = kafka.producer("enrichment"), kafka.reader("enrichment-rereader"), context.loop.time
    subscription = TopicSubscription(
        group=work.group,
        topic=planner.topic,
        batch=settings.max_poll_records,
        drain=settings.drain,
        check=TopicCheck(planner.topics, "the broker", lambda: None, clock),
        options=MEMBER["classic"],
    )
    dependencies = WorkerDependencies(
        application=context.application,
        planner=planner,
        settings=settings,
        consumer=kafka.consumer("enrichment", subscription),
        reread=reader.at,
        newest=newest_record(reader, planner.topic),
        caller=work.calls.caller,
        availability=work.calls.availability,
        producer=producer,
        counts=work.counts,
        now=context.now,
        clock=clock,
    )
    worker = worker_of(dependencies)
    started(worker)
    try:
        await worker.run()
    finally:
        work.calls.close()
        await producer.close()
