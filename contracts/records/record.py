"""A record of an input topic, and its result: a delta, or a refusal with the reason."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

LARGEST_SNAPSHOT = 1_000_000
"""In bytes, with its key: the default limit of a Kafka producer and broker."""

LATEST_MS = 253_402_300_799_999
"""The latest time that a `datetime` has, in milliseconds since 1970. A producer may stamp any other."""
HEARTBEAT_KEY = b"stateloop heartbeat"
"""The beginning of the key of a heartbeat: a record without value that the job writes to advance the watermark.

The rest names the run of the job, and has the time up to which it has read."""


class Reason(StrEnum):
    """The reasons of dead letters: the job's in the order of its checks, then the workers'."""

    EMPTY = "empty"
    """The record has no value, or an empty one."""
    OVERSIZED = "oversized"
    NOT_UTF8 = "not_utf8"
    MALFORMED = "malformed"
    """Not one JSON object whose fields have the declared types; the detail names the field.

    (Any JSON will do as text, as the parser writes it.)"""
    INVALID_FIELD = "invalid_field"
    """A required field is missing, or a value is outside its bounds; the detail names the field."""
    WRONG_KEY = "wrong_key"
    """The record's key is not its device's, or is missing, so the device's records have no order.

    (Events of a windowed state may have any key.)"""
    INCREDIBLE_TIME = "incredible_time"
    """A time is ahead of the broker's clock, or of the job's, by more than the application's skew."""
    LATE = "late"
    """The window and its grace, or all windows of the event, had ended when the broker received the record."""
    PROCESSOR_FAILED = "processor_failed"
    """The processor raised on the record, or yielded no valid state; the detail has the error. Its variables are reset.

    (The origin of a timer has no partition and no offset.)"""
    UNDECODABLE = "undecodable"
    """A raw record cannot be decoded to events; the detail has the problem, or the decoder's error."""
    LARGE_SNAPSHOT = "large_snapshot"
    """The state is too large to be published whole; the detail is its size. It is stored, and merged further."""
    UNDECODABLE_SNAPSHOT = "undecodable_snapshot"
    """A record of the snapshots topic is no snapshot, or one of a topic of alerts is none of those."""
    ENRICHMENT_FAILED = "enrichment_failed"
    """A request ended in a failure; the detail has the enrichment and the reason."""
    DELIVERY_FAILED = "delivery_failed"
    """A webhook did not accept an event of an alert; the detail has the reason, and the alert's id."""
    INVALID_ROW = "invalid_row"
    """A record of a reference table that its model rejects; the detail names the field. The former row stays."""
    NOT_DERIVED = "not_derived"
    """The function of a derived state raised on a snapshot; the detail is the error."""
    NOT_STORED = "not_stored"
    """A sink cannot write a record of a state, or its store refuses the row; the detail has the reason."""


class Record(NamedTuple):
    """A record of a topic. Its timestamp is in milliseconds since 1970, negative if it has none."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | str | None], ...] = ()

    @property
    def timestamp(self) -> datetime:
        """The timestamp as a time; 1970 if there is none, and the end of the year 9999 for a later one."""
        return datetime.fromtimestamp(min(max(self.timestamp_ms, 0), LATEST_MS) / 1000, UTC)

    @property
    def size(self) -> int:
        """The size of the value in bytes."""
        return len(self.value or b"")


@dataclass(frozen=True)
class Delta:
    """A record lifted to a partial state. An event brings `ts` and values, feedback a slot and an answer."""

    device_id: str
    first_seen: datetime
    delta_id: str
    """Equal for two deliveries of one delta within a window."""
    record_time: datetime
    ts: datetime | None = None
    values: dict[str, Any] = field(default_factory=dict)
    slot: str | None = None
    answer: dict[str, Any] | None = None
    traceparent: str | None = None
    event_offset: int | None = None
    """The offset of the event; None for feedback."""


class RecordError(Exception):
    """A record that cannot be merged."""

    def __init__(self, reason: Reason, detail: str | None = None) -> None:
        super().__init__(reason.value if detail is None else f"{reason.value}: {detail}")
        self.reason = reason
        self.detail = detail


def timestamp_ms(time: datetime) -> int:
    """Return a time as a timestamp of Kafka, in milliseconds since 1970."""
    return round(time.timestamp() * 1000)
