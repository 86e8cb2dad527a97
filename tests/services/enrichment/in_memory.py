"""A worker in memory, with a partition, an API and a producer that a test controls."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import orjson
from typing_extensions import override

from contracts import PermanentCallError
from contracts.metrics.counts import Counts
from contracts.metrics.worker import CATALOGUE
from contracts.records.record import Record
from contracts.wire import DeadLetter, Feedback
from services.enrichment.calls.caller import Caller
from services.enrichment.calls.retrier import CallRetrier
from services.enrichment.dependencies import WorkerDependencies
from services.enrichment.planner import EnrichmentPlanner
from services.enrichment.service import worker_of
from services.enrichment.settings import EnrichmentSettings
from services.runtime.errors import DeliveryFailedError
from tests.deadline import DEADLINE_S
from tests.services.enrichment.fleet import START, app, snapshot
from tests.services.runtime.in_memory import InMemoryProducer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from contracts import Application, Batch
    from contracts.model.enrichment import M
    from services.enrichment.calls.assembly import ApiCalls
    from services.enrichment.calls.caller import Enricher
    from services.enrichment.dispatcher import Availability
    from services.enrichment.partition_state import PartitionState
    from services.enrichment.planner import RequestPlanner
    from services.runtime.kafka.interfaces import Producer, RebalanceListener
    from services.runtime.kafka.values import Output, Partition
    from services.runtime.worker.worker import Worker

ROUND_S = 0.001


class Log:
    """A partition in memory. Implements GroupConsumer."""

    def __init__(self, values: list[bytes | None], topic: str = "snapshots") -> None:
        self.values = values
        self.topic = topic
        self.read = 0
        self.committed: list[int] = []
        self.fetches = 0
        self.pauses = 0
        self.fulls = 0
        self.open = asyncio.Event()
        self.open.set()
        self.batch = 10
        self.confirms = True
        self.confirmed: dict[int, int] = {}
        self.closed = False
        self.again = 0
        self.open_again = asyncio.Event()
        self.open_again.set()
        self.gone: set[int] = set()
        self.timestamp_ms = 0
        self.looked_up = self.newest_ms = 0
        """The timestamp of the newest record; 0 while the broker does not return it."""

    def subscribe(self, listener: RebalanceListener, loop: asyncio.AbstractEventLoop) -> None:
        self.listener = listener
        loop.call_soon(listener.on_assigned, [0])

    async def fetch(self, *, paused: bool, full: Collection[int], positions: Mapping[int, int]) -> list[Record]:
        await asyncio.sleep(ROUND_S)
        await self.open.wait()
        self.committed.extend(positions.values())
        if self.confirms and positions and positions != self.confirmed:
            self.confirmed = dict(positions)
            self.listener.on_committed(self.confirmed)
        self.fetches += 1
        self.pauses += paused
        self.fulls += 0 in full
        if paused or 0 in full:
            return []
        some = self.values[self.read :][: self.batch]
        batch = [Record(self.topic, 0, self.read + n, self.timestamp_ms, b"d", value) for n, value in enumerate(some)]
        self.read += len(batch)
        return batch

    async def reread(self, place: Partition, offsets: Sequence[int], is_wanted: Callable[[], bool]) -> list[Record]:
        """See Reread."""
        assert place.topic == self.topic
        assert list(offsets) == sorted(offsets)
        self.again += len(offsets)
        await asyncio.sleep(ROUND_S)
        await self.open_again.wait()
        if not is_wanted():
            return []
        kept = [offset for offset in offsets if offset not in self.gone]
        return [Record(*place, offset, 0, b"d", self.values[offset]) for offset in kept]

    async def newest(self, partition: int, is_wanted: Callable[[], bool]) -> Record | None:
        assert is_wanted()
        self.looked_up += 1
        return Record(self.topic, partition, len(self.values), self.newest_ms, b"d", None) if self.newest_ms else None

    async def seek(self, positions: Mapping[int, int]) -> Collection[int]:
        raise NotImplementedError

    async def next_offsets(self, partitions: Collection[int]) -> Mapping[int, int]:
        raise NotImplementedError

    def problem(self) -> None:
        """See `GroupConsumer.problem`."""

    async def lag(self) -> int:
        return len(self.values) - self.read

    async def close(self) -> None:
        self.closed = True


class Gated(InMemoryProducer):
    """Calls and a producer that wait for events; the producer may fail instead. Implements Availability too.

    A call for a plate in `blocked` waits for the event there; with `refused` all calls fail.
    """

    def __init__(self) -> None:
        self.answers, self.acks = asyncio.Event(), asyncio.Event()
        self.blocked: dict[str, asyncio.Event] = {}
        self.refused = False
        self.fails = False
        self.down: set[str] = set()
        self.back = asyncio.Event()
        self.calls = 0
        self.under_way = 0
        self.written: list[bytes] = []
        self.counts = Counts(CATALOGUE)

    async def get(self, _: str, model: type[M], /, **values: str | float) -> M:
        self.calls += 1
        self.under_way += 1
        try:
            await self.blocked.get(str(values.get("plate")), self.answers).wait()
        finally:
            self.under_way -= 1
        if self.refused:
            raise PermanentCallError("status 401", response="who are you?")
        return model.model_validate({"name": values.get("plate", "x"), "street": "x", "price": 1.0})

    async def get_one(self, batch: Batch[M], _: str | int) -> M:
        return await self.get("", batch.model)

    @override
    async def write(self, output: Output) -> None:
        value = output.value or b""
        self.written.append(value)
        assert output.timestamp_ms in (0, 1000 * (START.timestamp() + orjson.loads(value).get("version", 0)))
        await self.acks.wait()
        if self.fails:
            raise DeliveryFailedError(output.topic, "GONE", "it is gone")

    def is_available(self, api: str) -> bool:
        return api not in self.down

    async def wait_until_available(self, _: str) -> None:
        await self.back.wait()

    def let(self) -> Gated:
        """Answer everything immediately."""
        self.answers.set()
        self.acks.set()
        return self

    def feedback(self) -> list[Feedback]:
        return [Feedback.model_validate_json(one) for one in self.written if b'"fingerprint"' in one]

    def dead_letters(self) -> list[DeadLetter]:
        return [DeadLetter.model_validate_json(one) for one in self.written if b'"fingerprint"' not in one]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 (it waits for the state of other code)
            await asyncio.sleep(ROUND_S)


@asynccontextmanager
async def running(
    log: Log, gated: Gated, application: Application = app, calls: ApiCalls | None = None, **settings: Any
) -> AsyncIterator[Worker[PartitionState]]:
    """Run a worker, with `calls` if they are given."""
    retrier = CallRetrier(app.apis["registry"], sleep=asyncio.sleep, draw=lambda low, _: low, on_retry=lambda: None)
    fake = Caller(application, dict.fromkeys(application.by_name, gated), dict.fromkeys(application.by_name, retrier))
    async with at_work(
        application,
        log,
        caller=calls.caller if calls else fake,
        availability=calls.availability if calls else gated,
        producer=gated,
        counts=gated.counts,
        planner=None,
        stats_every=0.01,
        **settings,
    ) as worker:
        yield worker


@asynccontextmanager
async def at_work(  # noqa: PLR0913  # the parts of a worker
    application: Application,
    source: Log,
    *,
    caller: Enricher,
    availability: Availability,
    producer: Producer,
    counts: Counts,
    planner: RequestPlanner | None = None,
    now: datetime = START,
    **settings: object,
) -> AsyncIterator[Worker[PartitionState]]:
    """Run a worker with these dependencies until the end of the block."""
    parts = WorkerDependencies(
        application=application,
        planner=planner or EnrichmentPlanner(application, counts),
        settings=EnrichmentSettings.model_validate({"application": "fleet", "commit_every": 0, **settings}),
        consumer=source,
        reread=source.reread,
        newest=source.newest,
        caller=caller,
        availability=availability,
        producer=producer,
        counts=counts,
        now=lambda: now,
        clock=asyncio.get_running_loop().time,
    )
    worker = worker_of(parts)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        yield worker
        worker.stop()


def cars(count: int, more: str = "") -> list[bytes | None]:
    return [snapshot(1, f"P{n}", f"d{n}{more}").encode() for n in range(count)]
