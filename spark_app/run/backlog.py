"""The backlog: the records that the job has not read yet, and whether it must catch up before it goes live.

A long backlog, and each record for a new checkpoint, is read in one micro-batch: it publishes each window once, with
its last state. So readers see no half-built state, and workers repeat no call that has its answer. Without it, a replay
may lose records: its watermark moves on by the records of one partition while older ones of another are unread.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from contracts.records.record import timestamp_ms
from contracts.settings import KafkaSettings
from services.runtime.kafka.values import EARLIEST, LATEST, NEWEST, OffsetAt, Partition
from spark_app.topics.identity import TopicIdentity
from spark_app.topics.offsets import Positions, TopicOffsets

SHRINKS = 0.5
"""The largest part of a backlog that a pass may leave for another pass to be worth its time."""


@dataclass(frozen=True)
class Backlog:
    """The records between the checkpoint and the ends of the topics."""

    records: int
    is_first: bool
    """Whether the checkpoint has no committed batch."""
    is_long: bool
    """Whether an unread record is older than the newest record of all partitions by more than the limit."""

    def must_be_caught_up(self, *, may_stay_long: bool = False) -> bool:
        """Return whether to read it in a micro-batch first."""
        return self.records > 0 and (self.is_first or (self.is_long and not may_stay_long))


def measure(
    settings: KafkaSettings, topics: list[TopicIdentity], committed: Positions | None, limit: timedelta
) -> Backlog:
    """Return the backlog behind these positions; None stands for a checkpoint without a batch.

    Raises BrokerUnreachableError.
    """
    offsets = TopicOffsets(settings, topics)
    begin_offsets, end_offsets = offsets.at(EARLIEST), offsets.at(LATEST)
    positions = {
        partition: max(begin.offset, (committed or {}).get(partition, 0)) for partition, begin in begin_offsets.items()
    }
    newest = max((record.timestamp_ms for record in offsets.at(NEWEST).values()), default=0)
    # A stamp from the future must not make all other records look old.
    recent = min(newest, timestamp_ms(datetime.now(UTC))) - limit // timedelta(milliseconds=1)
    first_recent = offsets.at(max(0, recent))
    return compared(positions, end_offsets, first_recent, is_first=committed is None)


def compared(
    positions: Mapping[Partition, int],
    end_offsets: Mapping[Partition, OffsetAt],
    first_recent: Mapping[Partition, OffsetAt],
    *,
    is_first: bool,
) -> Backlog:
    """Return the backlog of these positions. `first_recent` is the first record of each partition that is not old."""
    unread = {partition: max(0, end_offsets[partition].offset - position) for partition, position in positions.items()}
    # The offset is -1 where a partition has no recent record: then all that is unread is old.
    old = any(
        unread[partition] and not positions[partition] >= record.offset >= 0
        for partition, record in first_recent.items()
    )
    return Backlog(sum(unread.values()), is_first, old)
