"""The base of the operations of a script, and what can be compared of two brokers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from services.runtime.errors import KafkaOperationError
from services.runtime.kafka.values import BY_KEY, Output, Partition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contracts.records.record import Record
    from tests.simulation.kafka.worlds import World

TOPICS = {
    "created": {"retention.ms": "-1"},
    "appended": {"retention.ms": "-1", "message.timestamp.type": "LogAppendTime"},
    "compacted": {"retention.ms": "-1", "cleanup.policy": "compact"},
}
PARTITIONS = 2
NOON_MS = 1_714_564_800_000
"""2024-05-01 12:00. The times of records are near, unless they are the broker's."""
RECENT_MS = 1_735_689_600_000
"""2025-01-01: scripts run later."""
NOW = "now"
STEP_S = 0.01
"""The time between two steps: their records have different times."""


class Operation(Protocol):
    """A step of a script."""

    is_read: bool
    """Whether it only reads: a real broker may need a moment to show the effects of earlier steps."""

    def run(self, world: World) -> object:
        """Return what must be equal on both brokers. Raises KafkaOperationError."""


class Write:
    """The base of operations that change something, so that they cannot be repeated."""

    is_read = False


class Read:
    """The base of operations that only read."""

    is_read = True


@dataclass(frozen=True)
class Message:
    """A record to write. Its time is this many seconds after noon, or that of the broker."""

    key: bytes | None = b"a"
    value: bytes | None = b""
    partition: int = 0
    second: int | None = 0
    headers: tuple[tuple[str, str | bytes | None], ...] = ()

    def output(self, topic: str) -> Output:
        """Return the record for a topic. One without a key, whose partition would be random, is for the first."""
        partition = 0 if self.key is None and self.partition == BY_KEY else self.partition
        timestamp_ms = 0 if self.second is None else NOON_MS + self.second * 1000
        return Output(topic, self.key, self.value, partition, timestamp_ms, self.headers)


def outcome(operation: Operation, world: World) -> object:
    """Return what an operation returns, or the kind of its error."""
    world.sleep(STEP_S)
    try:
        return operation.run(world)
    except KafkaOperationError as error:
        return failure(error)


def failure(error: KafkaOperationError) -> object:
    """Return what both brokers have in common of an error."""
    return type(error).__name__, error.code


def stamp(timestamp_ms: int) -> object:
    """Return a time, if a script has set it."""
    return NOW if timestamp_ms >= RECENT_MS else timestamp_ms


def observed(records: Iterable[Record]) -> dict[Partition, list[object]]:
    """Return records by partition."""
    found: dict[Partition, list[object]] = {}
    for record in records:
        values = (record.offset, stamp(record.timestamp_ms), record.key, record.value, record.headers)
        found.setdefault(Partition(record.topic, record.partition), []).append(values)
    return found


def places(world: World) -> list[Partition]:
    """Return all partitions of the script's topics."""
    return list(world.reader.partitions([world.prefix + topic for topic in TOPICS]))
