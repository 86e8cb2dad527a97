"""The main path: each selected dead letter goes into the loop again by its action, at a given rate."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from contracts.types.origin import Origin
from services.redrive.action import RedriveAction, action_for, reopening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from confluent_kafka import Message

    from contracts import Application
    from services.redrive.dead_letters import StoredDeadLetter

    Headers = Mapping[str, str | bytes | None]


class Reader(Protocol):
    """Reads the refused records."""

    def record(self, topic: str, partition: int, offset: int) -> Message | None:
        """Return the record at that place; None if the topic has deleted it."""
        ...


class Writer(Protocol):
    """Writes records."""

    def write(self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers) -> None:
        """Write a record, with a time in milliseconds, without waiting for the broker."""
        ...


@dataclass(frozen=True)
class Redrive:
    """Redrives dead letters. `wait` waits before each record; `progress` receives the counts so far."""

    application: Application
    origins: Reader
    writer: Writer
    now: Callable[[], datetime]
    wait: Callable[[], None]
    progress: Callable[[Counter[RedriveAction]], None]
    sent: set[str] = field(default_factory=set)
    """The places of the origins of all records that were sent again."""

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
        return taken

    def _send(self, found: StoredDeadLetter) -> RedriveAction:
        """Send a record again, once, however many dead letters it has."""
        letter = found.dead_letter
        if letter is None or (record := self.origins.record(letter.topic, letter.partition, letter.offset)) is None:
            return RedriveAction.NOT_RETAINED
        headers, timestamp = dict(record.headers() or []), record.timestamp()[1]
        origin = Origin.read(f"{letter.topic}/{letter.partition}/{letter.offset}", timestamp, headers)
        if origin.place in self.sent:
            return RedriveAction.DUPLICATE
        self.sent.add(origin.place)
        self.wait()
        self.writer.write(letter.topic, record.key(), record.value(), timestamp, headers | origin.headers())
        return RedriveAction.SENT_AGAIN

    def _request(self, found: StoredDeadLetter) -> None:
        """Reopen the slot. The record has the time of the window's start, which is neither late nor ahead."""
        feedback = reopening(found, self.now())
        self.wait()
        at = round(feedback.first_seen.timestamp() * 1000)
        self.writer.write(self.application.topics.feedback, found.key, feedback.encode(), at, {})
