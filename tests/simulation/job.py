"""A model of one process of the job: it runs the query, batch after batch, and writes heartbeats."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from contracts.model.emit import Emit
from contracts.records.record import HEARTBEAT_KEY
from services.runtime.broker_clock import BrokerClock
from services.runtime.errors import DeliveryFailedError, KafkaRequestError
from services.runtime.job_progress import JobProgress
from services.runtime.kafka.values import LATEST, NEWEST, Partition
from services.runtime.topic_owners import TopicOwners
from spark_app.errors import BrokerUnreachableError
from spark_app.run.heartbeat import WITHIN, Heartbeat
from spark_app.run.low_watermark import LowWatermark
from spark_app.run.published_progress import PublishedProgress
from spark_app.settings import JobSettings
from tests.simulation.blocking import ModelCalls
from tests.simulation.kafka.admin import ModelAdmin
from tests.simulation.kafka.blocking_producers import ModelBlockingProducer
from tests.simulation.kafka.producers import ModelProducer
from tests.simulation.query import Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from services.runtime.kafka.values import OffsetAt
    from spark_app.topics.offsets import Positions
    from tests.simulation.query import JobContext

PATIENCE = timedelta(minutes=2)
"""The time after which Spark's producer drops a record that is not acknowledged: the query fails then."""
CLAIM_S = 60.0
"""The shortest time between two claims of the topics: the product renews them after each batch."""
RESTART_S = 2.0
"""The pause before a query that failed is started again."""


class Offsets:
    """Looks offsets up in these partitions, as `SourceOffsets` does."""

    def __init__(self, context: JobContext, partitions: Iterable[Partition]) -> None:
        self._partitions = tuple(partitions)
        self._admin = ModelAdmin(context.broker, context.network)

    def ends(self) -> Positions:
        """See `SourceOffsets.ends`."""
        return {place: record.offset for place, record in self._records(LATEST).items()}

    def newest_ms(self) -> int:
        """See `SourceOffsets.newest_ms`."""
        return max(record.timestamp_ms for record in self._records(NEWEST).values())

    def _records(self, at: int) -> Mapping[Partition, OffsetAt]:
        try:
            return self._admin.records(dict.fromkeys(self._partitions, at))
        except KafkaRequestError as error:
            raise BrokerUnreachableError("the broker", error.detail) from error


class JobModel:
    """A process of the job. Its claim of the topics, its low watermark and its progress are the product's own."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._producer = ModelProducer(context.broker, context.network, PATIENCE)
        """That of the process: what a query has sent that failed is written before what the next one sends."""
        application = context.application
        topic = application.topics.snapshots
        snapshots = [Partition(topic, number) for number in range(context.partitions)]
        inputs = context.checkpoint.last.positions.keys()
        clock = asyncio.get_running_loop().time
        self._low = LowWatermark(Offsets(context, inputs), context.now, BrokerClock(clock))
        recorded = JobProgress(ModelAdmin(context.broker, context.network), topic)
        ends, epoch = Offsets(context, snapshots).ends, context.checkpoint.last.epoch
        self._published = PublishedProgress(application, epoch, ends, recorded, self._low, clock)
        settings = JobSettings(application="simulated", batch=timedelta(seconds=context.batch_s))
        self._batch_s = settings.batch_of(application).total_seconds()
        producer = ModelBlockingProducer(context.broker, context.network, WITHIN)
        self._heartbeat = Heartbeat(application, settings, self._low, producer, context.now, clock)
        self._heartbeat.prefix = b"%s %d " % (HEARTBEAT_KEY, context.random.getrandbits(64))
        self._calls = ModelCalls(context.network)
        admin, time = ModelAdmin(context.broker, context.network), context.network.time
        self._owners = TopicOwners(application, admin, lambda _: None, time.sleep, clock)
        self._claimed_at = 0.0

    async def run(self) -> None:
        """Run the query until the process ends, and start it again when it fails.

        Raises OlderCheckpointError when the job of a newer checkpoint has the topics.
        """
        await self._claim()
        while True:
            try:
                await self._run(Query(self._context, self._producer, self._heartbeat.prefix))
            except DeliveryFailedError:
                await asyncio.sleep(RESTART_S)

    async def _run(self, query: Query) -> None:
        await query.close_windows()
        left = query.backlog
        while left >= self._context.backlog or not query.is_built:
            query.catch_up()
            await self._commit(query)
            left, former = query.backlog, left
            if left > former / 2:
                break
        while True:
            await self._run_batch(query)
            if query.has_read or self._context.application.emit is Emit.EVENT:
                await self._commit(query)
            else:
                await self._wait()

    async def _run_batch(self, query: Query) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._batch_s
        while loop.time() < until:
            await query.read(until)

    async def _commit(self, query: Query) -> None:
        await query.commit()
        positions = self._context.checkpoint.last.positions
        self._low.committed({(topic, number): at for (topic, number), at in positions.items()})
        watermark = self._context.checkpoint.last.watermark
        progress: Any = SimpleNamespace(eventTime={} if watermark is None else {"watermark": watermark.isoformat()})
        self._published.after(progress)
        await self._calls.call(lambda: self._heartbeat.after(progress))
        if asyncio.get_running_loop().time() - self._claimed_at >= max(self._context.batch_s, CLAIM_S):
            await self._claim()

    async def _claim(self) -> None:
        """Claim the topics, or renew that. It waits for the broker, as in a thread."""
        self._claimed_at = asyncio.get_running_loop().time()
        epoch = self._context.checkpoint.last.epoch
        await self._calls.call(lambda: self._owners.claim(epoch))

    async def _wait(self) -> None:
        """Do what the job does while no records come: then no micro-batch runs."""
        self._low.advance()
        self._published.record()
        await self._calls.call(self._heartbeat.beat)
