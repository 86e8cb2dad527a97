"""Builds a sink as `stateloop sink` does, with the clients, the clock and the store of a simulation."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import orjson
from typing_extensions import override

from contracts.metrics.counts import Counts
from contracts.metrics.sink import CATALOGUE
from contracts.records.named_states import named
from contracts.records.state_record import EPOCH, MICROSECOND
from contracts.sinks import Move, RefusedRow, RowBatch, RowsRefusedError, StoreUnavailableError
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
from services.sink.takeover import known_offsets
from tests.simulation.blocking import ModelCalls
from tests.simulation.kafka.clients import ModelKafka
from tests.simulation.worker import REPORT_EVERY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from datetime import datetime
    from random import Random

    from contracts import Application
    from contracts.sinks import Row, Target
    from services.runtime.worker.worker import Worker
    from services.sink.partition import SinkPartition
    from tests.simulation.loop import SimulationLoop
    from tests.simulation.network import ProcessNetwork, WatchedBroker

SLOWEST_S = 0.05


@cache
def sink_settings(batch: int) -> SinkSettings:
    """Return the settings of sinks that write so many records at once."""
    return SinkSettings.model_validate({"application": "simulated", "sink_url": "memory:", "sink_batch": batch})


@dataclass
class StoreServer:
    """The server of a store: its content, which outlives connections, and its present fault."""

    random: Random
    state: StoredState = field(default_factory=StoredState)
    fault: str = ""
    """`away`, `hang`, or `unacknowledged`: it writes, and does not answer."""
    refused: int = 0
    """The number of sightings of rows that a constraint refuses; 0 if there is none."""
    written: set[tuple[str, tuple[datetime, int, int]]] = field(default_factory=set)
    """Key and order of all rows that were ever written."""
    removed: list[tuple[Row, float]] = field(default_factory=list)
    """The rows that were removed because they had expired, and when."""
    counts: list[Counts] = field(default_factory=list)
    """The figures of all sinks."""
    lowered: int = 0
    """The number of moves of a position to an earlier one."""
    overlaps: int = 0
    """The number of requests that began before the one before them on their connection had ended."""

    def lose_everything(self) -> None:
        """Remove all rows, and their positions with them."""
        self.restore(StoredState())

    def backup(self) -> StoredState:
        """Return a copy of its content."""
        copy = StoredState()
        copy.rows, copy.positions = dict(self.state.rows), dict(self.state.positions)
        return copy

    def restore(self, backup: StoredState) -> None:
        """Replace its content."""
        self.state.rows, self.state.positions = backup.rows, backup.positions

    def is_refused(self, value: bytes | None) -> bool:
        """Return whether a constraint refuses the row of a snapshot."""
        return self.refused > 0 and value is not None and orjson.loads(value)["state"]["sightings"] == self.refused

    async def respond(self) -> None:
        """Take some time, or fail. Raises StoreUnavailableError."""
        await asyncio.sleep(float("inf") if self.fault == "hang" else self.random.uniform(0.001, SLOWEST_S))
        if self.fault == "away":
            raise StoreUnavailableError("connection refused")


class ServedStore(MemoryStore):
    """A connection to the server, for one request at a time. It ends with a request that has no answer."""

    def __init__(self, target: Target, server: StoreServer) -> None:
        super().__init__(target, server.state)
        self._server = server
        self._is_connected = self._is_busy = False

    @override
    async def open(self) -> None:
        self._is_connected = True
        async with self._request():
            pass

    @override
    async def positions(self) -> Mapping[int, int]:
        async with self._request():
            return await super().positions()

    @override
    async def write(self, batch: RowBatch) -> int:
        rows = [row for step in batch.steps for row in step.rows]
        refused = [RefusedRow(row, "violates a constraint") for row in rows if self._server.is_refused(row.value)]
        async with self._request():
            if refused:
                _ = await super().write(RowBatch((), {one: Move(at, at) for one, (at, _) in batch.moves.items()}))
                raise RowsRefusedError(refused)  # unless there was a conflict
            changed = await super().write(batch)
            self._server.lowered += sum(move.position < move.expected for move in batch.moves.values())
            self._server.written.update((row.key, order_of(row)) for row in rows)
            if self._server.fault == "unacknowledged":
                raise StoreUnavailableError("connection reset")
            return changed

    @override
    async def remove_expired(self, now: int) -> int:
        async with self._request():
            present, at = dict(self.state.rows), asyncio.get_running_loop().time()
            removed = await super().remove_expired(now)
            self._server.removed += [(row, at) for key, row in present.items() if key not in self.state.rows]
            return removed

    @asynccontextmanager
    async def _request(self) -> AsyncIterator[None]:
        self._server.overlaps += self._is_busy
        if not self._is_connected:
            raise StoreUnavailableError("not connected")
        self._is_busy = True
        try:
            await self._server.respond()
            yield
        except (StoreUnavailableError, asyncio.CancelledError):
            self._is_connected = False
            raise
        finally:
            self._is_busy = False


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
    batch: int
    """The number of records of a write."""


async def run_sink(context: SinkContext, started: Callable[[Worker[SinkPartition]], None]) -> None:
    """Run the sink of the application's state until it is stopped. `started` receives it."""
    application, settings, counts = context.application, sink_settings(context.batch), Counts(CATALOGUE)
    context.server.counts.append(counts)
    kafka, clock = ModelKafka(context.broker, context.network), context.loop.time
    state = named(application)[application.name]
    target = settings.target(state)
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
        planner=Planner(state, target.windows, settings.retention(state)),
        dead_letters=DeadLetters(producer, application.topics.dead_letters),
        counts=counts,
        newest=newest_record(kafka.reader("sink-newest"), target.topic),
        offsets=known_offsets(
            kafka.admin("sink-offsets"), ModelCalls(context.network), sink_group(application), target.topic
        ),
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


def order_of(row: Row) -> tuple[datetime, int, int]:
    """Return the start of the window of a row, its epoch and its version."""
    return EPOCH + row.window_start * MICROSECOND, row.epoch, row.version
