"""A broker in memory, with a worker that may be killed at each of its writes and commits."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar, cast

from contracts.metrics.counts import Counts
from contracts.metrics.derive import CATALOGUE
from contracts.records.record import Record, timestamp_ms
from services.alerts.reader import AlertReader, AlertSources
from services.alerts.tables import Tables
from services.derive.handler import PROGRESS_S, DeriveDependencies
from services.derive.service import worker_of
from services.derive.topics import names
from services.runtime.errors import DeliveryFailedError, leaves
from services.runtime.kafka.values import BoundedRange, Partition
from tests.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from contracts import Application
    from services.derive.handler import DeriveHandler
    from services.runtime.job_progress import Published
    from services.runtime.kafka.interfaces import BlockingTopicReader, RebalanceListener
    from services.runtime.kafka.values import OffsetRange, Output

T = TypeVar("T")

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
POLL_S = 0.1
SETTLED_S = PROGRESS_S + 4 * POLL_S
"""After this time without a step, all is evaluated: the worker has looked at everything."""
TURNS = 5
"""The turns of the event loop within which a worker that is to stop has closed its partitions."""


class KilledError(Exception):
    """The worker is killed."""


class Broker:
    """Topics of one partition, and a committed offset. `fate` decides at each step: go on, refuse, kill, or stop.

    A worker reads `batch` records at once. With `restarts`, each run has a new one.
    """

    def __init__(
        self, application: Application, fate: Callable[[], str], *, batch: int = 3, restarts: bool = True
    ) -> None:
        self.application, self.fate = application, fate
        self.batch, self.restarts = batch, restarts
        self.member: Member | None = None
        self.topics: defaultdict[str, list[Record]] = defaultdict(list)
        self.committed = 0
        self.is_stopping = False
        """Whether the worker has received SIGTERM."""
        self.published: Published | None = None
        self.epoch = 0
        """That of the job that publishes."""

    def append(self, topic: str, key: bytes | None, value: bytes | None) -> int:
        records = self.topics[topic]
        records.append(Record(topic, 0, len(records), timestamp_ms(AT), key, value))
        return len(records) - 1

    def run(self, *, is_live: bool = False) -> None:
        """Run a worker until all is read and evaluated; after each kill or stop another one. `is_live`: no replay."""
        while True:
            member = self.member or Member(self, is_live=is_live)
            try:
                member.run()
            except KilledError:
                self.end()
            else:
                if not self.is_stopping:
                    if self.restarts:
                        self.end()
                    return
                self.end()
            self.is_stopping = False

    def end(self) -> None:
        """End the worker where it is."""
        if self.member is not None:
            self.member.close()
            self.member = None

    def step(self) -> str:
        """Return the fate of the next step. Raises KilledError. A step is finished also when the worker is to stop."""
        member = self.member
        assert member is not None
        fate = "kill" if member.is_dead else self.fate()
        member.note()
        if fate == "kill":
            member.is_dead = True
            raise KilledError
        if fate == "stop":
            self.is_stopping = True
            member.worker.stop()
        return fate

    def commit(self, offset: int) -> bool:
        if self.step() == "refuse":
            return False
        self.committed = max(self.committed, offset)
        return True


class Member:
    """A worker, on clients in memory and in virtual time."""

    def __init__(self, broker: Broker, *, is_live: bool) -> None:
        broker.member = self
        application = broker.application
        self.broker = broker
        self.loop = VirtualTimeLoop()
        self.is_dead = False
        self.noted_at = 0.0
        tables, calls = Tables(application), InlineCalls()
        sources = AlertSources(
            tables=cast("BlockingTopicReader", Reader(broker)),
            states=cast("BlockingTopicReader", Reader(broker)),
            progress=lambda numbers: dict.fromkeys(numbers, broker.published) if broker.published else {},
            following=calls,
            restoring=calls,
        )
        dependencies = DeriveDependencies(
            application=application,
            consumer=Source(broker, self.loop),
            producer=Producer(broker),
            partition_counts=self._partition_counts,
            tables=tables,
            alerts=AlertReader(application, tables, sources),
            counts=Counts(CATALOGUE),
            clock=self.loop.time,
            is_replay=not is_live,
        )
        self.worker = worker_of(dependencies, max(broker.batch, 1), commit_every=timedelta(0))
        self._task: asyncio.Task[None] | None = None

    def note(self) -> None:
        """Note that the worker did something."""
        self.noted_at = self.loop.time()

    def run(self) -> None:
        """Run until there is nothing left to do, or the worker has stopped. Raises KilledError."""
        self.note()
        self.loop.run_until_complete(self._run())

    def close(self) -> None:
        """End the worker where it is."""
        self.is_dead = True
        if self._task is not None:
            self._task.cancel()
            self.loop.run_until_complete(asyncio.wait([self._task]))
        self.loop.close()

    async def _run(self) -> None:
        self._task = self._task or self.loop.create_task(self.worker.run())
        while not self._task.done():
            await asyncio.wait([self._task], timeout=POLL_S)
            handler = cast("DeriveHandler", self.worker._handler)  # noqa: SLF001
            if self.loop.time() - self.noted_at > SETTLED_S and not handler.is_busy:
                return
        if (error := self._task.exception()) is not None:
            raise next((leaf for leaf in leaves(error) if isinstance(leaf, KilledError)), error)

    async def _partition_counts(self) -> dict[str, int]:
        application = self.broker.application
        return dict.fromkeys([application.topics.snapshots, *names(application)], 1)


class InlineCalls:
    """Calls functions in the event loop, which notes soon afterwards if it is to stop."""

    async def call(self, function: Callable[[], T]) -> T:
        result = function()
        for _ in range(TURNS):
            await asyncio.sleep(0)
        return result


class Source:
    """The snapshots. Implements FencedGroupConsumer."""

    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        self.broker, self.loop = broker, loop
        self.position = broker.committed
        self.confirmed: int | None = None

    def subscribe(self, listener: RebalanceListener, loop: asyncio.AbstractEventLoop) -> None:
        self.listener = listener
        loop.call_soon(listener.on_assigned, [0])

    async def fetch(self, *, paused: bool, full: Collection[int], positions: Mapping[int, int]) -> list[Record]:
        if 0 in positions and positions[0] != self.confirmed:
            self._commit(positions[0])
        topic = self.broker.topics[self.broker.application.topics.snapshots]
        start = self.position if self.position <= len(topic) else 0  # auto.offset.reset is earliest
        is_idle = paused or full or not self.broker.batch or len(topic) == start
        await asyncio.sleep(POLL_S if is_idle else 0)
        found = [] if is_idle else topic[start : start + self.broker.batch]
        if found:
            self.position = start + len(found)
            cast("Member", self.broker.member).note()
        return found

    async def seek(self, positions: Mapping[int, int]) -> Collection[int]:
        raise AssertionError(f"nothing is read again: {positions}")

    async def next_offsets(self, partitions: Collection[int]) -> Mapping[int, int]:
        return dict.fromkeys(partitions, self.position)

    def proven_at(self, partition: int) -> float:
        assert partition == 0
        return self.loop.time()

    async def prove(self, partition: int, position: int) -> bool:
        assert partition == 0
        await asyncio.sleep(0)
        return self._commit(position)

    async def lag(self) -> int:
        return 0

    def problem(self) -> None:
        """Nothing is missing."""

    async def close(self) -> None:
        """Commit nothing more."""

    def _commit(self, position: int) -> bool:
        is_done = self.broker.commit(position)
        if is_done:
            self.confirmed = position
            self.listener.on_committed({0: position})
        return is_done


class Producer:
    """Writes to the broker. Implements Producer."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    async def send(self, outputs: Sequence[Output]) -> Sequence[int]:
        """Write all of these; or some, before the worker is killed, or does not know of the others."""
        for output in outputs:
            await asyncio.sleep(0)
            if self.broker.step() == "refuse":
                raise DeliveryFailedError(output.topic, "_MSG_TIMED_OUT", "no broker acknowledged it in time")
            self.broker.append(output.topic, output.key, output.value)
        return [0] * len(outputs)

    def drop_unsent(self) -> None:
        """Have nothing that is not sent."""

    async def close(self) -> None:
        """Close nothing."""


class Reader:
    """Reads topics of one partition, and follows them."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.positions: dict[str, int] = {}

    def partitions(self, topics: Sequence[str]) -> list[Partition]:
        return [Partition(topic, 0) for topic in topics]

    def bounds(self, partitions: Sequence[Partition], within_s: float) -> dict[Partition, BoundedRange]:
        assert within_s
        return {partition: BoundedRange(0, len(self.broker.topics[partition.topic])) for partition in partitions}

    def bounds_since(self, partitions: Sequence[Partition], time: datetime) -> dict[Partition, BoundedRange]:
        topics = {partition: self.broker.topics[partition.topic] for partition in partitions}
        earlier = {one: sum(record.timestamp < time for record in records) for one, records in topics.items()}
        return {one: BoundedRange(earlier[one], len(records)) for one, records in topics.items()}

    def read(self, ranges: Mapping[Partition, OffsetRange], is_stopping: Callable[[], bool]) -> Iterator[list[Record]]:
        for (topic, _), (start, end) in ranges.items():
            self.broker.step()
            if is_stopping() or self.broker.is_stopping:
                return
            records = self.broker.topics[topic][:end]
            self.positions[topic] = len(records)
            yield records[start:]

    def stop(self) -> None:
        self.positions.clear()

    def poll(self) -> list[Record]:
        found: list[Record] = []
        for topic, position in self.positions.items():
            found += self.broker.topics[topic][position:]
            self.positions[topic] = len(self.broker.topics[topic])
        if found:
            cast("Member", self.broker.member).note()
        return found
