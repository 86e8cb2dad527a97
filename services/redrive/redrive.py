"""The main path: each chosen letter goes back into the loop by its way, at a given rate."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from services.redrive.way import Way, opening, way

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from confluent_kafka import Message

    from contracts import Application
    from services.redrive.letters import Found

ROOT = "stateloop-redriven"
"""The header of a record that was brought back: where it was when it was refused first."""


class Reader(Protocol):
    """Where records are that were refused."""

    def record(self, topic: str, partition: int, offset: int) -> Message | None:
        """The record at that place; None when it is not kept any more."""
        ...


class Writer(Protocol):
    """Where they go."""

    def write(self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, root: str | None) -> None:
        """Write a record, with a time in milliseconds. Returns before it is there."""
        ...


@dataclass(frozen=True)
class Redrive:
    """Brings letters back. `pace` waits before each record; `progress` is told the counts so far."""

    application: Application
    origins: Reader
    writer: Writer
    now: Callable[[], datetime]
    pace: Callable[[], None]
    progress: Callable[[Counter[Way]], None]
    roots: set[str] = field(default_factory=set)

    def run(self, chosen: Iterable[Found]) -> Counter[Way]:
        """How many letters took each way."""
        counts: Counter[Way] = Counter()
        for found in chosen:
            counts[self._back(found)] += 1
            self.progress(counts)
        return counts

    def _back(self, found: Found) -> Way:
        taken = way(self.application, found, self.now())
        if taken is Way.PRODUCED:
            return self._produce(found)
        if taken is Way.ASKED:
            self._ask(found)
        return taken

    def _produce(self, found: Found) -> Way:
        """A record refused again and again has a letter of each time; it goes back once."""
        letter = found.letter
        if letter is None or (record := self.origins.record(letter.topic, letter.partition, letter.offset)) is None:
            return Way.GONE
        root = _root(record) or f"{letter.topic}/{letter.partition}/{letter.offset}"
        if root in self.roots:
            return Way.AGAIN
        self.roots.add(root)
        self.pace()
        self.writer.write(letter.topic, record.key(), record.value(), record.timestamp()[1], root)
        return Way.PRODUCED

    def _ask(self, found: Found) -> None:
        """The record has the time of the life's beginning, which is never late and never ahead."""
        feedback = opening(found, self.now())
        self.pace()
        at = round(feedback.first_seen.timestamp() * 1000)
        self.writer.write(self.application.topics.feedback, found.key, feedback.encode(), at, None)


def _root(record: Message) -> str | None:
    headers = dict(record.headers() or [])
    root = headers.get(ROOT)
    return root.decode() if isinstance(root, bytes) else root
