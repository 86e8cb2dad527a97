"""A sink in memory, with a topic, a store and a producer that a test controls."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr
from typing_extensions import override

from contracts.metrics.counts import Counts
from contracts.metrics.sink import CATALOGUE
from contracts.records.record import Record
from contracts.sinks import RefusedRow, RowsRefusedError, StoreUnavailableError, Target, Windows
from contracts.testing.memory_store import MemoryStore, StoredState
from contracts.wire import DeadLetter
from services.runtime.adapters import uniform
from services.sink.dead_letters import DeadLetters
from services.sink.handler import SinkDependencies
from services.sink.plan import Planner
from services.sink.retried_store import RetriedStore
from services.sink.service import worker_of
from services.sink.settings import SinkSettings
from services.sink.takeover import KnownOffsets
from tests.deadline import DEADLINE_S
from tests.services.runtime.in_memory import InMemoryProducer
from tests.services.sink.records import START, STATE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping
    from datetime import datetime

    from contracts.sinks import RowBatch
    from services.runtime.kafka.interfaces import RebalanceListener
    from services.runtime.kafka.values import Output

ROUND_S = 0.001
TARGET = Target("flights", "snapshots", Windows.NEWEST)
URL = "redis://host"


class Topic:
    """A partition in memory, from which one member reads. Implements FencedGroupConsumer."""

    def __init__(self, records: list[Record], start: int = 0) -> None:
        self.records = records
        self.at = start
        self.committed: list[int] = []
        self.sought: list[int] = []
        self.refused_seeks = 0
        self.listener: RebalanceListener | None = None
        self.batch = 10
        self.closed = False
        self.time = START
        """The time of the sink's clock."""
        self.group_offset = -1
        """The offset that the group has committed before this member; negative without one."""
        self.end: int | None = None
        """The end offset, if it is not that of the records."""
        self.lookups = 0
        """The number of requests for the offset of the next record."""
        self.proofs: list[int] = []
        """The offsets that the group was asked to commit before a write."""
        self.refused_proofs = 0
        """The number of these commits that the group refuses."""
        self.unanswered = 0
        """The number of requests for offsets that the broker does not answer."""
        self.hangs = False
        """Whether the broker lets requests for offsets wait for ever."""
        self.newest_ms: int | None = None
        """The timestamp of the newest record; None while the broker does not return it."""

    def now(self) -> datetime:
        return self.time

    async def newest(self, partition: int, is_wanted: Callable[[], bool]) -> Record | None:
        assert is_wanted()
        return None if self.newest_ms is None else Record("snapshots", partition, 0, self.newest_ms, b"d", None)

    async def offsets(self, partition: int, /) -> KnownOffsets | None:
        assert partition == 0
        if self.hangs:
            await asyncio.Event().wait()
        self.unanswered -= 1
        return (
            KnownOffsets(self.group_offset, len(self.records) if self.end is None else self.end)
            if self.unanswered < 0
            else None
        )

    def subscribe(self, listener: RebalanceListener, loop: asyncio.AbstractEventLoop) -> None:
        self.listener = listener
        loop.call_soon(listener.on_assigned, [0])

    async def fetch(self, *, paused: bool, full: Collection[int], positions: Mapping[int, int]) -> list[Record]:
        await asyncio.sleep(ROUND_S)
        if positions and self.listener is not None:
            self.committed += positions.values()
            self.listener.on_committed(dict(positions))
        found = (
            [] if paused or 0 in full else [record for record in self.records if record.offset >= self.at][: self.batch]
        )
        self.at = found[-1].offset + 1 if found else self.at
        return found

    def proven_at(self, partition: int) -> float:
        raise NotImplementedError

    async def prove(self, partition: int, position: int) -> bool:
        assert partition in {0, 1, 2}
        self.proofs.append(position)
        self.refused_proofs -= 1
        if self.refused_proofs >= 0:
            return False
        self.group_offset = position
        if self.listener is not None:
            self.listener.on_committed({partition: position})
        return True

    async def seek(self, positions: Mapping[int, int]) -> Collection[int]:
        if self.refused_seeks:
            self.refused_seeks -= 1
            return ()
        self.at = positions[0]
        self.sought.append(self.at)
        return positions

    async def next_offsets(self, partitions: Collection[int]) -> Mapping[int, int]:
        self.lookups += 1
        return dict.fromkeys(partitions, self.at)

    async def lag(self) -> int:
        return len(self.records) - self.at

    def problem(self) -> str | None:
        return None

    async def close(self) -> None:
        self.closed = True
        if self.listener is not None:
            self.committed += (await self.listener.on_revoked([0])).values()


class ControlledStore(MemoryStore):
    """Fails, hangs or refuses as a test wants it."""

    def __init__(self, state: StoredState | None = None, target: Target = TARGET) -> None:
        super().__init__(target, state)
        self.is_down = False
        self.hangs = False
        self.refuses: set[str] = set()
        self.batches: list[RowBatch] = []
        self.attempts = self.opened = self.removals = 0
        self.before_write: Callable[[], object] = lambda: None

    @override
    async def open(self) -> None:
        await self._answer()
        self.opened += 1

    @override
    async def positions(self) -> Mapping[int, int]:
        await self._answer()
        return await super().positions()

    @override
    async def write(self, batch: RowBatch) -> int:
        await self._answer()
        self.before_write()
        wrong = [row for step in batch.steps for row in step.rows if row.key in self.refuses]
        if wrong:
            raise RowsRefusedError([RefusedRow(row, "too large") for row in wrong])
        changed = await super().write(batch)
        self.batches.append(batch)
        return changed

    @override
    async def remove_expired(self, now: int) -> int:
        self.removals += 1
        return await super().remove_expired(now)

    async def _answer(self) -> None:
        self.attempts += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.is_down:
            raise StoreUnavailableError("connection refused")


class Published(InMemoryProducer):
    """A topic of dead letters."""

    def __init__(self) -> None:
        self.dead_letters: list[tuple[bytes | None, DeadLetter]] = []
        self.acknowledges = asyncio.Event()
        self.acknowledges.set()

    @override
    async def write(self, output: Output) -> None:
        assert (output.topic, output.timestamp_ms) == ("dead_letters", 0)
        self.dead_letters.append((output.key, DeadLetter.model_validate_json(output.value or b"")))
        await self.acknowledges.wait()


class RunningSink:
    """A sink with what it uses."""

    def __init__(self, topic: Topic, store: ControlledStore, published: Published, **settings: Any) -> None:
        given = {"stop_within": timedelta(seconds=0.2), "sink_timeout": timedelta(seconds=5)} | settings
        self.topic, self.store, self.published = topic, store, published
        self.counts = Counts(CATALOGUE)
        configured = SinkSettings(application="", sink_url=SecretStr(URL), **given)
        clock = asyncio.get_running_loop().time
        self.retried = RetriedStore(STATE.name, store, configured.sink_timeout, self.counts, clock, uniform)
        self.dependencies = SinkDependencies(
            state=STATE.name,
            batch=configured.sink_batch,
            consumer=topic,
            store=self.retried,
            planner=Planner(STATE, TARGET.windows, timedelta(0)),
            dead_letters=DeadLetters(published, "dead_letters"),
            counts=self.counts,
            newest=topic.newest,
            offsets=topic.offsets,
            now=topic.now,
            clock=clock,
        )
        self.worker = worker_of(self.dependencies, configured)


@asynccontextmanager
async def running(
    topic: Topic, store: ControlledStore | None = None, published: Published | None = None, **settings: Any
) -> AsyncIterator[RunningSink]:
    """Run a sink until the end of the block, and stop it."""
    sink = RunningSink(topic, store or ControlledStore(), published or Published(), **settings)
    task = asyncio.create_task(sink.worker.run())
    try:
        yield sink
        sink.worker.stop()
        async with asyncio.timeout(DEADLINE_S):
            await task
    finally:
        task.cancel()


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 (a condition of several parts)
            await asyncio.sleep(ROUND_S)
