"""The main path: each selected dead letter goes into the loop again by its action, at a given rate."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import ValidationError
from typing_extensions import override

from contracts.alerts.deliveries import delivery
from contracts.metrics import worker as metrics
from contracts.records.record import timestamp_ms
from contracts.types.origin import Origin
from contracts.wire.alert_record import AlertRecord
from services.runtime.errors import DeliveryFailedError
from services.runtime.kafka.values import BY_KEY, Output, Partition
from services.runtime.worker.handler import Handler, WorkerMetrics
from services.tools.redrive.action import RedriveAction, action_for, reopening
from services.tools.redrive.dead_letters import StoredDeadLetter
from services.tools.redrive.errors import WriteError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime

    from contracts import Application
    from contracts.alerts.deliveries import DeliveryRequest
    from contracts.records.record import Record
    from contracts.wire import DeadLetter
    from services.runtime.broker_clock import BrokerClock
    from services.runtime.kafka.interfaces import Producer, TopicReader
    from services.runtime.worker.partition import AssignedPartition, CreateTask
    from services.tools.redrive.dead_letters import DeadLetterFilter
    from services.tools.redrive.webhooks import Webhooks

CONFIRM_S = 300.0
"""The time within which the brokers must confirm a record."""
REPORT_EVERY_S = 1.0
TOO_LARGE = "MSG_SIZE_TOO_LARGE"
"""The code of a client or a broker that refuses a record for its size."""


@dataclass(frozen=True)
class RedriveRun:
    """The clients and the results of one redrive, which the applications of a suite share."""

    origins: TopicReader
    producer: Producer
    now: Callable[[], datetime]
    broker_clock: BrokerClock
    """The clock by which the job refuses answers as late."""
    wait: Callable[[], Awaitable[None]]
    """Waits until the next record or event may be sent."""
    report: Callable[[str], None]
    """Receives a line for the operator."""
    is_dry_run: bool = False
    counts: Counter[RedriveAction] = field(default_factory=Counter)
    """The number of dead letters by action."""
    sent: set[str] = field(default_factory=set)
    """The positions of the origins of all records that were sent again, and the events that were delivered again."""

    partitions: dict[str, frozenset[Partition]] = field(default_factory=dict)
    """The partitions of the topics of origins."""

    @property
    def summary(self) -> str:
        """The counts in words."""
        actions = (f", {count:,} {action.value}" for action, count in self.counts.most_common())
        return f"{self.counts.total():,} dead letters{''.join(actions)}"


class RedriveHandler(Handler["AssignedPartition"]):
    """Redrives the selected dead letters of one application, whose records a bounded run passes."""

    loop_metrics = WorkerMetrics(metrics.COMMITS, metrics.KAFKA_ERRORS, metrics.LAG)

    def __init__(
        self, application: Application, selection: DeadLetterFilter, run: RedriveRun, webhooks: Webhooks
    ) -> None:
        self._application = application
        self._selection = selection
        self._run = run
        self._webhooks = webhooks
        self._turn = asyncio.Lock()

    # Handler

    @override
    def begin(self, spawn: CreateTask) -> None:
        """Report the counts while they grow."""
        _ = spawn(self._report())

    @override
    async def open(self, partition: AssignedPartition) -> AssignedPartition:
        return partition

    @override
    async def process(self, state: AssignedPartition, records: Sequence[Record]) -> None:
        """Redrive dead letters of one partition at a time: neighbouring origins are read fast, and events are ordered.

        Raises WriteError, and a WorkerError for unusable secrets.
        """
        self._run.broker_clock.note(records[-1].timestamp_ms)
        async with self._turn, asyncio.TaskGroup() as writes:
            for stored in filter(self._selection.matches, map(StoredDeadLetter.of, records)):
                action, output = await self._redriven(stored)
                if output is not None and not self._run.is_dry_run:
                    await self._run.wait()
                    writes.create_task(self._write(output))
                self._run.counts[action] += 1
        state.track(records[-1].offset, 0)

    @override
    def abandon(self, state: AssignedPartition) -> None:
        """Do nothing: there is no state."""

    @override
    def progress(self) -> float:
        return self._run.counts.total()

    # One dead letter

    async def _redriven(self, stored: StoredDeadLetter) -> tuple[RedriveAction, Output | None]:
        """Take the action for a dead letter; return it, and the record to write."""
        action, dead_letter = action_for(self._application, stored, self._run.broker_clock.now()), stored.dead_letter
        if dead_letter is not None and action is RedriveAction.SENT_AGAIN:
            return await self._copied(dead_letter)
        if dead_letter is not None and action is RedriveAction.DELIVERED_AGAIN:
            return await self._delivered(dead_letter), None
        return action, self._request(stored) if action is RedriveAction.REQUESTED_AGAIN else None

    async def _copied(self, dead_letter: DeadLetter) -> tuple[RedriveAction, Output | None]:
        """Return the copy of a refused record, once, however many dead letters it has."""
        record = await self._origin(dead_letter)
        if record is None:
            return RedriveAction.NOT_RETAINED, None
        headers, position = dict(record.headers), f"{record.topic}/{record.partition}/{record.offset}"
        origin = Origin.read(position, record.timestamp_ms, headers)
        if timestamp_ms(dead_letter.timestamp) not in (origin.time, record.timestamp_ms, max(record.timestamp_ms, 0)):
            return RedriveAction.NOT_RETAINED, None  # the record at its place is another one: the topic was recreated
        if origin.position in self._run.sent:
            return RedriveAction.DUPLICATE, None
        self._run.sent.add(origin.position)
        headers |= origin.headers()
        copy = Output(record.topic, record.key, record.value, BY_KEY, record.timestamp_ms, tuple(headers.items()))
        return RedriveAction.SENT_AGAIN, copy

    def _request(self, stored: StoredDeadLetter) -> Output:
        """Return what reopens the slot, at the time of the window's start, which is neither late nor ahead."""
        now = max(self._run.now(), self._run.broker_clock.now())  # it must be later than the failure
        feedback, topic = reopening(self._application, stored, now), self._application.topics.feedback
        return Output(topic, stored.key, feedback.encode(), BY_KEY, timestamp_ms(feedback.first_seen))

    async def _delivered(self, dead_letter: DeadLetter) -> RedriveAction:
        """Deliver an event again, once, however many dead letters it has."""
        alerts, event = dead_letter.enrichment or "", f"{dead_letter.topic}/{dead_letter.idempotency_key}"
        if not self._webhooks.has_address(alerts):
            return RedriveAction.NOT_ADDRESSED
        if event in self._run.sent:
            return RedriveAction.DUPLICATE
        request = await self._delivery(alerts, dead_letter)
        if request is None:
            return RedriveAction.NOT_RETAINED
        self._run.sent.add(event)
        if self._run.is_dry_run:
            return RedriveAction.DELIVERED_AGAIN
        await self._run.wait()
        outcome = await self._webhooks.deliver(request)
        if outcome.status != "failure":
            return RedriveAction.DELIVERED_AGAIN
        self._run.report(f"{request.inputs['event']} {request.inputs['id']} is refused again: {outcome.reason}")
        return RedriveAction.REFUSED_AGAIN

    async def _delivery(self, alerts: str, dead_letter: DeadLetter) -> DeliveryRequest | None:
        """The delivery that failed. The record at its place is another one if the topic was recreated."""
        record = await self._origin(dead_letter)
        try:
            alert = AlertRecord.model_validate_json((record and record.value) or b"")
        except ValidationError:
            return None
        return delivery(alerts, alert, dead_letter.idempotency_key)

    async def _origin(self, dead_letter: DeadLetter) -> Record | None:
        """Return the record at the place that a dead letter names; None if there is none. Raises TopicReadError."""
        place, offset = Partition(dead_letter.topic, dead_letter.partition), dead_letter.offset
        if place.topic not in self._run.partitions:
            self._run.partitions[place.topic] = frozenset(await self._run.origins.partitions([place.topic]))
        if place not in self._run.partitions[place.topic]:
            return None
        kept = (await self._run.origins.bounds([place]))[place]
        if not kept.start <= offset < kept.end:
            return None
        return next(iter(await self._run.origins.at(place, [offset], lambda: True)), None)

    async def _write(self, output: Output) -> None:
        """Write a record, and wait until the brokers have it. One that they never take stops no other."""
        try:
            async with asyncio.timeout(CONFIRM_S):
                await self._run.producer.send([output])
        except DeliveryFailedError as error:
            if error.code == TOO_LARGE:
                self._run.counts.update({RedriveAction.SENT_AGAIN: -1, RedriveAction.TOO_LARGE: 1})
                return
            raise WriteError(error.topic, error.code, error.detail) from error
        except TimeoutError as error:
            raise WriteError(output.topic, "TIMED_OUT", f"it was not confirmed in {CONFIRM_S:g} s") from error

    async def _report(self) -> None:
        reported = 0
        while True:
            await asyncio.sleep(REPORT_EVERY_S)
            if self._run.counts.total() != reported:
                reported = self._run.counts.total()
                self._run.report(self._run.summary)
