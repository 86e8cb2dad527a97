"""The progress of a job, recorded in Kafka: metadata of committed offsets of the group `stateloop.progress`.

The offset of a partition of snapshots has a time and an epoch as its metadata. All records of the input that arrived
before that time are in the snapshots of that epoch before that offset: their windows do not change by them any more.
The job records it when a batch is committed, so it may be two batches old. A reader that has read up to the offset
judges by this time, and not by its clock, whether a window is over: the job may be down, or may read a backlog. It does
not cover the snapshots of a later epoch: a rebuilt job reads those records again. But a window that was over stays so:
the progress of a job that was rebuilt, or restored from a savepoint, names the latest one before.
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
    former: "FormerProgress | None" = None
    """The progress of the epochs before that has the latest time. Its offset is not later."""


class FormerProgress(BaseModel):
    """A progress that another one has replaced."""

    offset: int
    time: AwareDatetime
    epoch: int


class Published(NamedTuple):
    """The end of the snapshots of an epoch that have all records that arrived before a time."""

    offset: int
    time: datetime
    epoch: int
    former: Published | None = None
    """The progress of the epochs before that has the latest time. Its offset is not later."""


class JobProgress:
    """The progress of the job that writes one topic of snapshots. It does nothing while the broker is away."""

    def __init__(self, admin: Admin, topic: str) -> None:
        self._admin = admin
        self._topic = topic
        self._former: dict[int, Published] | None = None

    def record(self, time: datetime, epoch: int, end_offsets: Mapping[int, int]) -> None:
        """Record that all records that arrived before a time are in the snapshots before these offsets; do not wait.

        The first time, it waits for the progress of the epochs before.
        """
        with suppress(KafkaRequestError):  # the next batch records a later time
            if self._former is None:
                self._former = _latest_before(epoch, self._read(end_offsets))
            self._admin.commit_async(GROUP, self._commits(time, epoch, end_offsets, self._former))

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
            ends = end_offsets()
            formers = [one.former for one in known if one.former is not None]
            former = min(formers, key=_by_time) if len(formers) == len(known) else None
            copies = {number: former._replace(offset=end) for number, end in ends.items()} if former else {}
            commits = self._commits(time, epoch, ends, copies)
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

    def _commits(
        self, time: datetime, epoch: int, end_offsets: Mapping[int, int], former: Mapping[int, Published]
    ) -> dict[Partition, GroupOffset]:
        commits = {}
        for number, end in end_offsets.items():
            before = former.get(number)
            facts = None if before is None else before._asdict()
            recorded = RecordedProgress.model_validate({"time": time.astimezone(UTC), "epoch": epoch, "former": facts})
            commits[Partition(self._topic, number)] = GroupOffset(end, recorded.model_dump_json(exclude_none=True))
        return commits


def _published(commit: GroupOffset) -> Published | None:
    try:
        recorded = RecordedProgress.model_validate_json(commit.metadata)
    except ValidationError:
        return None
    former = None if recorded.former is None else Published(**recorded.former.model_dump())
    return Published(commit.offset, recorded.time, recorded.epoch, former)


def _latest_before(epoch: int, known: Mapping[int, Published]) -> dict[int, Published]:
    """Return the progress of each partition with the latest time, of the epochs before this one."""
    found = {
        number: [before for before in (one, one.former) if before is not None and before.epoch != epoch]
        for number, one in known.items()
    }
    return {number: max(each, key=_by_time)._replace(former=None) for number, each in found.items() if each}


def _by_time(published: Published) -> datetime:
    return published.time
