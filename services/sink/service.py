"""Builds the sinks of a process from its settings, and runs them until a signal stops them."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from contracts.metrics.counts import Counts
from contracts.metrics.sink import CATALOGUE
from services.runtime.monitoring import serving
from services.runtime.publisher import KafkaPublisher
from services.runtime.shutdown import STOP_SIGNALS
from services.runtime.source import KafkaSource
from services.runtime.topic_check import TopicCheck
from services.runtime.topic_owners import TopicOwners
from services.sink.dead_letters import DeadLetters
from services.sink.monitoring import SinkMonitoring
from services.sink.plan import Planner
from services.sink.retried_store import RetriedStore
from services.sink.stores import store_factory, store_name
from services.sink.worker import SinkDependencies, SinkWorker

if TYPE_CHECKING:
    from contracts import Application, Suite
    from contracts.model.named_state import NamedState
    from contracts.sinks import SinkStore
    from services.sink.settings import SinkSettings

log = logging.getLogger(__name__)

NAME = "sink"
"""The name of the Kafka clients."""
US_PER_NS = 1000


def stores(settings: SinkSettings, suite: Suite) -> dict[str, SinkStore]:
    """Return the store of each state, unconnected. Raises a PermanentError for settings that cannot work."""
    url = settings.url()
    factory = store_factory(url, settings.sink_store)
    return {name: factory(url, settings.target(state)) for name, (_, state) in settings.states(suite).items()}


async def serve(settings: SinkSettings, suite: Suite) -> None:
    """Run a sink for each state until SIGTERM or SIGINT.

    Raises a StateloopError, or a group of them, if one of them cannot work.
    """
    counts, loop = Counts(CATALOGUE), asyncio.get_running_loop()
    group = settings.group or f"sink-{store_name(settings.url(), settings.sink_store)}"
    opened = stores(settings, suite)
    async with AsyncExitStack() as stack:
        publisher = KafkaPublisher(settings.client(), NAME, loop)
        stack.push_async_callback(publisher.close)
        workers: dict[str, SinkWorker] = {}
        for name, (application, state) in settings.states(suite).items():
            source = _source(settings, f"{group}-{name}", application, state)
            dependencies = SinkDependencies(
                state=name,
                settings=settings,
                source=source,
                store=RetriedStore(name, opened[name], settings.sink_timeout, counts, time.monotonic),
                planner=Planner(state, settings.target(state).windows, settings.retention(state)),
                dead_letters=DeadLetters(publisher, application.topics.dead_letters),
                counts=counts,
                now=_now,
                clock=time.monotonic,
            )
            workers[name] = SinkWorker(dependencies)
        port = stack.enter_context(
            serving(SinkMonitoring(workers, counts, loop), settings.http_host, settings.http_port)
        )
        if port is not None:
            log.info("endpoints", extra={"facts": {"url": f"http://{settings.http_host}:{port}"}})
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, _stop, workers)
        async with asyncio.TaskGroup() as tasks:
            for worker in workers.values():
                tasks.create_task(worker.run())


def _stop(workers: dict[str, SinkWorker]) -> None:
    for worker in workers.values():
        worker.stop()


def _source(settings: SinkSettings, group: str, application: Application, state: NamedState) -> KafkaSource:
    owners = TopicOwners(application, settings.client(), log.warning)
    return KafkaSource(
        settings.member(),
        NAME,
        group=group,
        topic=state.topic,
        batch=settings.max_poll_records,
        drain=settings.stop_within,
        check=TopicCheck((state.topic, application.topics.dead_letters), settings.kafka, owners.check),
    )


def _now() -> int:
    return time.time_ns() // US_PER_NS
