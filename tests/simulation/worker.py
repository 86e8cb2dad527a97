"""Builds a worker as `stateloop worker` does, with the clients, clocks and APIs of a simulation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING

from contracts.metrics.counts import Counts
from contracts.metrics.worker import CATALOGUE
from services.enrichment.calls.assembly import Runtime, assemble
from services.enrichment.dependencies import WorkerDependencies
from services.enrichment.planner import EnrichmentPlanner
from services.enrichment.rereader import TopicRereader
from services.enrichment.service import worker_of
from services.enrichment.settings import EnrichmentSettings
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

    from contracts import Application
    from services.enrichment.partition_state import PartitionState
    from services.runtime.worker.worker import Worker
    from tests.simulation.api import ApiStub
    from tests.simulation.loop import SimulationLoop
    from tests.simulation.network import ProcessNetwork, WatchedBroker

REPORT_EVERY = timedelta(minutes=1)
"""The interval of the figures of all workers, which nothing here reads: each five seconds, they would take long."""


@cache
def worker_settings(unfinished: int, deferred: int, failures: int, in_flight: int) -> EnrichmentSettings:
    """Return the settings of a worker with these limits."""
    limits = {"unfinished": unfinished, "max_deferred": deferred, "in_flight": in_flight}
    limits |= {"failure_window": failures, "failure_min_count": failures}
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


async def run_worker(context: WorkerContext, started: Callable[[Worker[PartitionState]], None]) -> None:
    """Run a worker until it is stopped. `started` receives it. Raises a StateloopError if it cannot go on."""
    kafka = ModelKafka(context.broker, context.network)
    application, settings, loop, counts = context.application, context.settings, context.loop, Counts(CATALOGUE)
    runtime = Runtime(clock=loop.time, now=context.now, draw=context.random.uniform)
    transports = {api: StubTransport(context.api, api, context.name) for api in application.apis}
    calls = assemble(application, transports, counts, runtime, limits=settings.failure_limits)
    planner = EnrichmentPlanner(application, counts)
    producer, reader = kafka.producer("enrichment"), kafka.reader("enrichment-rereader")
    subscription = TopicSubscription(
        group=application.enrichment_group,
        topic=planner.topic,
        batch=settings.max_poll_records,
        drain=settings.drain,
        check=TopicCheck(planner.topics, "the broker", lambda: None, loop.time),
        options=MEMBER["classic"],
    )
    dependencies = WorkerDependencies(
        application=application,
        planner=planner,
        settings=settings,
        consumer=kafka.consumer("enrichment", subscription),
        rereader=TopicRereader(reader, planner.topic),
        newest=newest_record(reader, planner.topic),
        caller=calls.caller,
        availability=calls.availability,
        producer=producer,
        counts=counts,
        now=context.now,
        clock=loop.time,
    )
    worker = worker_of(dependencies)
    started(worker)
    try:
        await worker.run()
    finally:
        calls.close()
        await producer.close()
