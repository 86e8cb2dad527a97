"""The records of the topics other than events: snapshots, answers and derived records."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from typing_extensions import override

from contracts.types.key import Key

Order = tuple[int, int]
"""Epoch and version."""
Status = Literal["result", "absence", "failure", "skipped"]
"""The outcome of a request. A skipped one made no call: a dependency has no result, or its condition is false."""

REDRIVEN = "redriven"
"""The fingerprint that a redrive gives a failure. It names no inputs, so the worker requests the answer again."""
FORMAT = 1
"""The latest version of the records' formats. A reader rejects a record of a later one."""
LARGEST_COUNT = 1 << 53
"""The largest version or epoch: every JSON parser reads whole numbers up to it exactly."""
EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
WindowStart = Annotated[AwareDatetime, Field(ge=EARLIEST, le=LATEST)]
"""The start of a window. Its year in UTC is 1 to 9999 too."""


class Wire(BaseModel):
    """A record of a topic, as JSON. Absent fields are null."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    def encode(self) -> bytes:
        """The record's value as it is produced."""
        return orjson.dumps(self.model_dump(mode="json", exclude_none=True))


class TopicRecord(Wire):
    """A record of a topic that later releases read."""

    format: int | None = Field(default=None, ge=1, le=FORMAT)
    """The version of the record's format; null for 1. A new optional field needs no new version."""


class Answer(Wire):
    """The outcome of one request, in an enrichment's slot. The order of the fields is the order of the merge."""

    epoch: int = Field(default=0, ge=0, le=LARGEST_COUNT)
    """The epoch of the snapshot that the request was planned on."""
    version: int = Field(ge=1, le=LARGEST_COUNT)
    """The version of that snapshot."""
    status: Status
    ts: AwareDatetime
    """The time of the answer, by the worker's clock."""
    fingerprint: str
    """The identity of the inputs."""
    reason: str | None = None
    """The reason for a missing result."""
    spent: int | None = Field(default=None, ge=0)
    """The number of the enrichment's requests for this window in the budget's period; null without a budget."""
    result: dict[str, Any] | None = None

    @property
    def order(self) -> Order:
        """The order of answers in one slot: the greatest one wins."""
        return self.epoch, self.version


class Feedback(TopicRecord):
    """The answer to one request, on its way back into the state.

    `result` has it under the enrichment's name, so that one topic carries every model. Two answers with the same
    enrichment, fingerprint, epoch, version, status and time are one delta.
    """

    device_id: Key
    first_seen: AwareDatetime
    enrichment: str
    epoch: int = Field(default=0, ge=0, le=LARGEST_COUNT)
    """The epoch of the snapshot that the request was planned on. Releases before 0.2.0 wrote none."""
    version: int = Field(ge=1, le=LARGEST_COUNT)
    status: Status
    ts: AwareDatetime
    fingerprint: str
    reason: str | None = None
    spent: int | None = Field(default=None, ge=0)
    result: dict[str, dict[str, Any]] | None = None
    traceparent: str | None = None
    """The trace context of the request, in a traced application."""

    @override
    def encode(self) -> bytes:
        """The record's value as it is produced, by orjson alone: there is one for each call, and no model in it."""
        fields = {name: value for name, value in self.__dict__.items() if value is not None}
        return orjson.dumps(fields, option=orjson.OPT_UTC_Z)


class Snapshot(TopicRecord):
    """The whole state of a key in one window after one record.

    The record's key is the `window_key` of both; it is in the partition of the device's events, or of the key of a
    windowed state.
    """

    device_id: Key
    """The key of the state."""
    first_seen: WindowStart
    """The start of the window."""
    epoch: int = Field(default=0, ge=0, le=LARGEST_COUNT)
    """The epoch of the job's checkpoint: its creation time in milliseconds since 1970. A rebuild starts a new one."""
    version: int = Field(ge=1, le=LARGEST_COUNT)
    """The number of deltas merged. It grows within one window and epoch.

    Readers order the snapshots of a key by (first_seen, epoch, version), and drop those that are not greater.
    """
    as_of: AwareDatetime
    """The largest broker time of the records merged."""
    event_offset: int | None = Field(default=None, ge=0)
    """The largest offset of the events merged; null before the first, and in a windowed state. Their partition is the
    snapshot's."""
    state: dict[str, Any]
    enrichments: dict[str, Answer] = Field(default_factory=dict)
    traceparent: str | None = None
    """The trace context of the record with the largest broker time, in a traced application."""

    @property
    def window(self) -> tuple[str, datetime]:
        """Device and start of the window: the key of the state."""
        return self.device_id, self.first_seen

    @property
    def order(self) -> Order:
        """The order of snapshots of one window: the greater one is newer."""
        return self.epoch, self.version


class OffsetVersioned(Wire):
    """A record of a named state whose versions are offsets, also after it has moved to another partition."""

    layout: int | None = Field(default=None, ge=1)
    """The number of the topic's partitions when it was written first. Of two records of a key in several layouts, that
    of the larger one is newer."""
    copied_from: int | None = Field(default=None, ge=0)
    """In a copy in another partition, the offset of the first record: the copy has the same version."""

    def moved(self, version: int) -> Self:
        """Return a copy of this version for another partition."""
        return self.model_copy(update={"copied_from": version})


class DerivedRecord(TopicRecord, OffsetVersioned):
    """The value that a device's snapshot gives another key.

    Of a key's records the one of the greatest (first_seen, epoch, version) counts. It is in the partition of its key;
    the record's own key also names the device's window. Compaction keeps what was written last, and so keeps the
    last record of each window: it does not choose between devices, nor between windows.
    """

    key: str
    first_seen: AwareDatetime
    epoch: int = Field(default=0, ge=0)
    version: int = Field(ge=1)
    """With `first_seen` and `epoch`, of the snapshot that it was derived from."""
    as_of: AwareDatetime
    device_id: str
    """The device of that snapshot."""
    value: dict[str, Any]


def decode_snapshot(value: bytes) -> Snapshot:
    """Return the snapshot of a record's value. Raises ValueError for anything else."""
    # Its validator itself: model_validate costs a sixth more, and there is a snapshot for each record.
    snapshot: Snapshot = Snapshot.__pydantic_validator__.validate_python(orjson.loads(value))
    return snapshot
