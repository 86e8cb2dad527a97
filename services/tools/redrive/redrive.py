"""The main path: each selected dead letter goes into the loop again by its action, at a given rate."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pydantic import ValidationError

from contracts.planning.deliveries import delivery
from contracts.records.record import timestamp_ms
from contracts.types.origin import Origin
from contracts.wire.alerts import AlertRecord
from services.tools.redrive.action import RedriveAction, action_for, reopening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from contracts import Application
    from contracts.planning.deliveries import DeliveryRequest
    from contracts.records.record import Record
    from contracts.wire import DeadLetter
    from services.tools.redrive.dead_letters import StoredDeadLetter

    Headers = Mapping[str, str | bytes | None]


class Reader(Protocol):
    """Reads the refused records."""

    def record(self, topic: str, partition: int, offset: int) -> Record | None:
        """Return the record at that position; None if the topic has deleted it."""
        ...


class Writer(Protocol):
    """Writes records."""

    def write(self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers) -> None:
        """Write a record, with a time in milliseconds, without waiting for the broker."""
        ...


class Deliverer(Protocol):
    """Delivers events of alerts to their webhooks."""

    def has_address(self, alerts: str) -> bool:
        """Return whether events of the alerts of this name can be delivered."""
        ...

    def deliver(self, request: DeliveryRequest) -> bool:
        """Deliver an event. Return whether the webhook has accepted it."""
        ...


@dataclass(frozen=True)
class Redrive:
    """Redrives dead letters. `wait` waits before each record and event; `progress` receives the counts so far."""

    application: Application
    origins: Reader
    writer: Writer
    deliverer: Deliverer
    now: Callable[[], datetime]
    wait: Callable[[], None]
    progress: Callable[[Counter[RedriveAction]], None]
    sent: set[str] = field(default_factory=set)
    """The positions of the origins of all records that were sent again, and the events that were delivered again."""

    def run(self, chosen: Iterable[StoredDeadLetter]) -> Counter[RedriveAction]:
        """Return the number of dead letters by action."""
        counts: Counter[RedriveAction] = Counter()
        for found in chosen:
            counts[self._redrive(found)] += 1
            self.progress(counts)
        return counts

    def _redrive(self, found: StoredDeadLetter) -> RedriveAction:
        taken = action_for(self.application, found, self.now())
        if taken is RedriveAction.SENT_AGAIN:
            return self._send(found)
        if taken is RedriveAction.REQUESTED_AGAIN:
            self._request(found)
        if taken is RedriveAction.DELIVERED_AGAIN and found.dead_letter:
            return self._deliver(found.dead_letter)
        return taken

    def _send(self, found: StoredDeadLetter) -> RedriveAction:
        """Send a record again, once, however many dead letters it has."""
        dead_letter = found.dead_letter
        if (
            dead_letter is None
            or (record := self.origins.record(dead_letter.topic, dead_letter.partition, dead_letter.offset)) is None
        ):
            return RedriveAction.NOT_RETAINED
        headers, position = dict(record.headers), f"{record.topic}/{record.partition}/{record.offset}"
        origin = Origin.read(position, record.timestamp_ms, headers)
        if origin.position in self.sent:
            return RedriveAction.DUPLICATE
        self.sent.add(origin.position)
        self.wait()
        self.writer.write(record.topic, record.key, record.value, record.timestamp_ms, headers | origin.headers())
        return RedriveAction.SENT_AGAIN

    def _request(self, found: StoredDeadLetter) -> None:
        """Reopen the slot. The record has the time of the window's start, which is neither late nor ahead."""
        feedback = reopening(found, self.now())
        self.wait()
        at = timestamp_ms(feedback.first_seen)
        self.writer.write(self.application.topics.feedback, found.key, feedback.encode(), at, {})

    def _deliver(self, dead_letter: DeadLetter) -> RedriveAction:
        """Deliver an event again, once, however many dead letters it has."""
        if not self.deliverer.has_address(dead_letter.enrichment or ""):
            return RedriveAction.NOT_ADDRESSED
        event = f"{dead_letter.topic}/{dead_letter.idempotency_key}"
        if event in self.sent:
            return RedriveAction.DUPLICATE
        request = self._delivery(dead_letter)
        if request is None:
            return RedriveAction.NOT_RETAINED
        self.sent.add(event)
        self.wait()
        return RedriveAction.DELIVERED_AGAIN if self.deliverer.deliver(request) else RedriveAction.REFUSED_AGAIN

    def _delivery(self, dead_letter: DeadLetter) -> DeliveryRequest | None:
        """The delivery that failed. The record at its place is another one if the topic was recreated."""
        record = self.origins.record(dead_letter.topic, dead_letter.partition, dead_letter.offset)
        try:
            alerts = AlertRecord.model_validate_json((record and record.value) or b"")
        except ValidationError:
            return None
        return delivery(dead_letter.enrichment or "", alerts, dead_letter.idempotency_key)
