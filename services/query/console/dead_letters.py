"""The latest dead letters: a bounded tail of their topics, followed by a thread."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from pydantic import ValidationError

from contracts.api.loop import DeadLettersResponse, DeadLetterSummary
from contracts.wire import DeadLetter
from services.runtime.errors import TopicReadError
from services.runtime.kafka.values import EndlessRange, Partition

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from contracts.records.record import Record
    from services.runtime.kafka.interfaces import BlockingTopicReader

KEPT = 200
LOOKED_BACK = 200
"""The number of earlier records that are read from each partition."""
MOST_REASONS = 50
OTHERS = "others"
UNREADABLE = "unreadable"
LONGEST = {"reason": 80, "topic": 255}
LONGEST_TEXT = 1_000
"""The number of characters to which these members and the other texts are cut."""
ANSWER_S = 5.0
POLL_S = 0.5
TAIL = {
    "fetch.message.max.bytes": 1024 * 1024,
    "queued.max.messages.kbytes": 4096,
    "fetch.wait.max.ms": 500,
}
"""The options of the reader: memory and requests are bounded."""


class DeadLetterLog:
    """The latest dead letters of a topic, and their counts by reason. One thread writes, any thread reads."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._latest: list[DeadLetterSummary] = []
        self._since: datetime | None = None

    def record(self, letter: DeadLetterSummary) -> None:
        """Add one. Reasons beyond the first fifty are counted together, to bound memory."""
        with self._lock:
            known = letter.reason in self._counts or len(self._counts) < MOST_REASONS
            self._counts[letter.reason if known else OTHERS] += 1
            self._since = min(self._since or letter.written, letter.written)
            self._latest.append(letter)
            if len(self._latest) > 2 * KEPT:
                self._latest = _newest(self._latest, KEPT)[::-1]

    def answer(self, limit: int) -> DeadLettersResponse:
        """Return the counts, and the latest dead letters, the last one first."""
        with self._lock:
            latest = tuple(_newest(self._latest, min(limit, KEPT)))
            counts = dict(self._counts.most_common())
            return DeadLettersResponse(topic=self._topic, since=self._since, counts=counts, latest=latest)


class DeadLetterReader:
    """Reads the topics of these logs in a thread from `start` to `close`, which joins it. Failures are retried."""

    def __init__(self, reader: BlockingTopicReader, logs: Mapping[str, DeadLetterLog]) -> None:
        self._reader = reader
        self._logs = logs
        self._positions: dict[Partition, int] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="dead-letters", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread and join it."""
        self._stopping.set()
        self._thread.join(2 * ANSWER_S)

    def _follow(self) -> None:
        try:
            while not self._stopping.is_set():
                with suppress(TopicReadError):
                    self._read()
                self._stopping.wait(POLL_S)
        finally:
            self._reader.close()

    def _read(self) -> None:
        """Read from the positions, and first from before the ends, once all topics exist. Raises TopicReadError."""
        if not self._positions:
            partitions = self._reader.partitions(list(self._logs))
            if {partition.topic for partition in partitions} != self._logs.keys():
                return
            bounds = self._reader.bounds(partitions, ANSWER_S)
            self._positions = {one: max(start, end - LOOKED_BACK) for one, (start, end) in bounds.items()}
        ranges = {partition: EndlessRange(position) for partition, position in self._positions.items()}
        for records in self._reader.read(ranges, self._stopping.is_set):
            for record in records:
                self._logs[record.topic].record(summary(record))
                self._positions[Partition(record.topic, record.partition)] = record.offset + 1


def summary(record: Record) -> DeadLetterSummary:
    """Return the summary of a record, also of one that is not a dead letter."""
    value = record.value or b""
    try:
        letter = DeadLetter.model_validate_json(value).model_dump()
    except ValidationError:
        letter = {
            "reason": UNREADABLE,
            "detail": "not a dead letter of Stateloop",
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": None,
            "head": value.decode(errors="replace"),
        }
    letter["key"] = None if record.key is None else record.key.decode(errors="replace")
    for name, member in letter.items():
        if isinstance(member, str):
            letter[name] = member[: LONGEST.get(name, LONGEST_TEXT)]
    return DeadLetterSummary(written=record.timestamp, **letter)


def _newest(letters: list[DeadLetterSummary], count: int) -> list[DeadLetterSummary]:
    """Return the latest, the last one first, also within one millisecond."""
    return sorted(letters, key=lambda one: one.written)[::-1][:count]
