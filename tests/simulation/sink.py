"""Builds a sink as `stateloop sink` does, with the clients, the clock and the store of a simulation."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from typing_extensions import override

from contracts.metrics.counts import Counts
from contracts.metrics.sink import CATALOGUE
from contracts.records.named_states import named
from contracts.sinks import StoreUnavailableError
from contracts.testing.memory_store import MemoryStore, StoredState
from services.runtime.kafka.interfaces import TopicSubscription
from services.runtime.topic_check import TopicCheck
from services.runtime.worker.newest_record import newest_record
from services.runtime.worker.subscription import MEMBER
from services.sink.dead_letters import DeadLetters
from services.sink.handler import SinkDependencies
from services.sink.plan import Planner
from services.sink.retried_store import RetriedStore
from services.sink.service import DRAIN, worker_of
from services.sink.settings import SinkSettings
from tests.simulation.kafka.clients import ModelKafka
from tests.simulation.script import time_at
from tests.simulation.worker import REPORT_EVERY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from random import Random

    from contracts import Application
    from contracts.sinks import Row, RowBatch, Target
    from services.runtime.worker.worker import Worker
    from services.sink.partition import SinkPartition
    from tests.simulation.loop import SimulationLoop
    from tests.simulation.network import ProcessNetwork, WatchedBroker

SLOWEST_S = 0.05


@cache
def sink_settings() -> SinkSettings:
    """Return the settings of all sinks."""
    return SinkSettings.model_validate({"application": "simulated", "sink_url": "memory:"})


@dataclass
class StoreServer:
    """The server of a store: its content, which outlives connections, and its present fault."""

    random: Random
    state: StoredState = field(default_factory=StoredState)
    fault: str = ""
    """`away`, `hang`, or `unacknowledged`: it writes, and does not answer."""
    written: set[Row] = field(default_factory=set)
    """All rows that were ever written."""
    removed_early: list[Row] = field(default_factory=list)
    """Rows that were removed before they had expired."""

    def lose_everything(self) -> None:
        """Remove all rows, and their positions with them."""
        self.state.rows.clear()
        self.state.positions.clear()

    async def respond(self) -> None:
        """Take some time, or fail. Raises StoreUnavailableError."""
        await asyncio.sleep(float("inf") if self.fault == "hang" else self.random.uniform(0.001, SLOWEST_S))
        if self.fault == "away":
            raise StoreUnavailableError("connection refused")


class ServedStore(MemoryStore):
    """A connection to the server."""

    def __init__(self, target: Target, server: StoreServer) -> None:
        super().__init__(target, server.state)
        self._server = server

    @override
    async def open(self) -> None:
        await self._server.respond()

    @override
    async def positions(self) -> Mapping[int, int]:
        await self._server.respond()
        return await super().positions()

    @override
    async def write(self, batch: RowBatch) -> int:
        await self._server.respond()
        changed = await super().write(batch)
        self._server.written.update(row for step in batch.steps for row in step.rows)
        if self._server.fault == "unacknowledged":
            raise StoreUnavailableError("connection reset")
        return changed

    @override
    async def remove_expired(self, now: int) -> int:
        await self._server.respond()
        present, now_us = dict(self.state.rows), time_at(asyncio.get_running_loop().time()).timestamp() * 1e6
        removed = await super().remove_expired(now)
        gone = [row for key, row in present.items() if key not in self.state.rows]
        self._server.removed_early += [row for row in gone if (row.expires_at or 0) > now_us]
        return removed


@dataclass(frozen=True)
class SinkContext:
    """The parts of a sink. `now` is its clock."""

    application: Application
    loop: SimulationLoop
    broker: WatchedBroker
    network: ProcessNetwork
    server: StoreServer
    now: Callable[[], datetime]
    random: Random


async def run_sink(context: SinkContext, started: Callable[[Worker[SinkPartition]], None]) -> None:
    """Run the sink of the application's state until it is stopped. `started` receives it."""
    application, settings, counts = context.application, sink_settings(), Counts(CATALOGUE)
    kafka, clock = ModelKafka(context.broker, context.network), context.loop.time
    planner, target = planner_of(application)
    producer = kafka.producer("sink")
    subscription = TopicSubscription(
        group=sink_group(application),
        topic=target.topic,
        batch=settings.max_poll_records,
        drain=DRAIN,
        check=TopicCheck((target.topic, application.topics.dead_letters), "the broker", lambda: None, clock),
        options=MEMBER["classic"],
    )
    store, draw = ServedStore(target, context.server), context.random.uniform
    dependencies = SinkDependencies(
        state=application.name,
        batch=settings.sink_batch,
        consumer=kafka.consumer("sink", subscription),
        store=RetriedStore(application.name, store, settings.sink_timeout, counts, clock, draw),
        planner=planner,
        dead_letters=DeadLetters(producer, application.topics.dead_letters),
        counts=counts,
        newest=newest_record(kafka.reader("sink-newest"), target.topic),
        now=context.now,
        clock=clock,
    )
    worker = worker_of(dependencies, settings, report_every=REPORT_EVERY)
    started(worker)
    try:
        await worker.run()
    finally:
        await producer.close()


def sink_group(application: Application) -> str:
    """Return the consumer group of the sinks."""
    return f"sink-memory-{application.name}"


@cache
def planner_of(application: Application) -> tuple[Planner, Target]:
    """Return the plan of the rows of the application's state, and where they go."""
    settings, state = sink_settings(), named(application)[application.name]
    target = settings.target(state)
    return Planner(state, target.windows, settings.retention(state)), target
