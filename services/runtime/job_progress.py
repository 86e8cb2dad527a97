"""The progress of a job, recorded in Kafka: metadata of committed offsets of the group `stateloop.progress`.

The offset of a partition of snapshots has a time and an epoch as its metadata. All records of the input that arrived
before that time are in the snapshots of that epoch before that offset: their windows do not change by them any more.
The job records it when a batch is committed, so it may be two batches old. A reader that has read up to the offset
judges by this time, and not by its clock, whether a window is over: the job may be down, or may read a backlog. It does
not cover the snapshots of a later epoch: a rebuilt job reads those records again.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from pydantic import AwareDatetime, BaseModel, ValidationError

from services.runtime.errors import KafkaRequestError
from services.runtime.kafka.values import GroupOffset, Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from services.runtime.kafka.interfaces import Admin

GROUP = "stateloop.progress"
ANSWER_S = 5.0


class RecordedProgress(BaseModel):
    """The metadata of a committed offset."""

    time: AwareDatetime
    epoch: int


class Published(NamedTuple):
    """The end of the snapshots of an epoch that have all records that arrived before a time."""

    offset: int
    time: datetime
    epoch: int


class JobProgress:
    """The progress of the job that writes one topic of snapshots. It does nothing while the broker is away."""

    def __init__(self, admin: Admin, topic: str) -> None:
        self._admin = admin
        self._topic = topic

    def record(self, time: datetime, epoch: int, end_offsets: Mapping[int, int]) -> None:
        """Record that all records that arrived before a time are in the snapshots before these offsets; do not wait."""
        with suppress(KafkaRequestError):  # the next batch records a later time
            self._admin.commit_async(GROUP, self._commits(time, epoch, end_offsets))

    def spread(
        self, partitions: int, end_offsets: Callable[[], Mapping[int, int]], require_lease: Callable[[], object]
    ) -> None:
        """Record the earliest progress of all partitions for each of them: they have copies from each other.

        The job records the progress in all partitions that it has, so others have none: they were added. The end
        offsets are read after the progress, which is also true of later ones. Raises KafkaRequestError, and what
        `require_lease` raises if a job may run.
        """
        known = self._read(range(partitions)).values()
        if known:
            time, epoch = min(one.time for one in known), min(one.epoch for one in known)
            commits = self._commits(time, epoch, end_offsets())
            require_lease()
            self._admin.commit(GROUP, commits)

    def read(self, numbers: Collection[int]) -> dict[int, Published] | None:
        """Return the progress in these partitions; None if no broker answers.

        There is nothing for a partition without progress, or whose metadata the job has not written.
        """
        try:
            return self._read(numbers)
        except KafkaRequestError:
            return None

    def close(self) -> None:
        """Close the client."""
        self._admin.close()

    def _read(self, numbers: Collection[int]) -> dict[int, Published]:
        committed = self._admin.committed(GROUP, [Partition(self._topic, number) for number in numbers], ANSWER_S)
        found = {partition.number: _published(commit) for partition, commit in committed.items() if commit.metadata}
        return {number: published for number, published in found.items() if published is not None}

    def _commits(self, time: datetime, epoch: int, end_offsets: Mapping[int, int]) -> dict[Partition, GroupOffset]:
        metadata = RecordedProgress(time=time.astimezone(UTC), epoch=epoch).model_dump_json()
        return {Partition(self._topic, number): GroupOffset(end, metadata) for number, end in end_offsets.items()}


def _published(commit: GroupOffset) -> Published | None:
    try:
        recorded = RecordedProgress.model_validate_json(commit.metadata)
    except ValidationError:
        return None
    return Published(commit.offset, recorded.time, recorded.epoch)
