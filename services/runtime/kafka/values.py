"""The values that the clients of Kafka take and return."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BY_KEY = -1
"""The partition of a record whose partition follows from its key."""
EARLIEST, LATEST, NEWEST = -2, -1, -3
"""In place of a time: the first offset that a partition has, its end, and its record of the latest time."""


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int


class BoundedRange(NamedTuple):
    """Offsets from `start` to before `end`."""

    start: int
    end: int


class EndlessRange(NamedTuple):
    """Offsets from `start` on: its reader follows the partition."""

    start: int
    end: None = None


OffsetRange = BoundedRange | EndlessRange


class Output(NamedTuple):
    """A record to write. Its timestamp is in milliseconds since 1970; 0 is the time of the call."""

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int = BY_KEY
    timestamp_ms: int = 0
    headers: Sequence[tuple[str, str | bytes | None]] = ()


class GroupOffset(NamedTuple):
    """A committed offset of a group: of the next record to read. The offset is negative if none is committed."""

    offset: int
    metadata: str = ""


class OffsetAt(NamedTuple):
    """An offset, and the time of its record in milliseconds since 1970; -1 of an offset without a record."""

    offset: int
    timestamp_ms: int


class TopicInfo(NamedTuple):
    """An existing topic. One that is deleted and created again has another id."""

    id: str
    partitions: int


class NewTopic(NamedTuple):
    """A topic to create."""

    name: str
    partitions: int
    replicas: int
    config: Mapping[str, str]
