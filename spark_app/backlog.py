"""The backlog: the records that the job has not read yet, and whether it must catch up before it goes live.

A long backlog, and each record for a new checkpoint, is read in one micro-batch: it publishes each window once, with
its last state. So readers see no half-built state, and workers repeat no call that has its answer. Without it, a replay
may lose records: its watermark moves on by the records of one partition while older ones of another are unread.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ListOffsetsResultInfo, OffsetSpec
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from contracts.records.record import timestamp_ms
from contracts.settings import KafkaSettings
from services.runtime.kafka_clients import create_admin_client
from spark_app.errors import BrokerUnreachableError
from spark_app.folder import CheckpointFolder
from spark_app.topics import PATIENCE_S, TopicIdentity

EARLIEST_MS = 0
NO_LEADER = {KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION}
RETRY_S = 0.1
"""The pause before offsets are looked up again while a partition has no leader."""
SHRINKS = 0.5
"""The largest part of a backlog that a pass may leave for another pass to be worth its time."""
COMMITS, OFFSETS = "commits", "offsets"
"""Spark's folders in a checkpoint: a file for each committed batch, and one with the offsets where each batch ends."""
Partition = tuple[str, int]
Positions = dict[Partition, int]
"""The offset of the next record to read, by topic and partition."""


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
    begin_offsets, end_offsets = offsets.at(OffsetSpec.earliest()), offsets.at(OffsetSpec.latest())  # type: ignore[no-untyped-call]
    positions = {
        partition: max(begin.offset, (committed or {}).get(partition, 0)) for partition, begin in begin_offsets.items()
    }
    newest = max((end.timestamp for end in offsets.at(OffsetSpec.max_timestamp()).values()), default=0)  # type: ignore[no-untyped-call]
    # A stamp from the future must not make all other records look old.
    recent = min(newest, timestamp_ms(datetime.now(UTC))) - limit // timedelta(milliseconds=1)
    first_recent = offsets.at(OffsetSpec.for_timestamp(max(0, recent)))
    return compared(positions, end_offsets, first_recent, is_first=committed is None)


def offset_ranges(settings: KafkaSettings, topics: list[TopicIdentity]) -> dict[tuple[str, int], tuple[int, int]]:
    """Return the first and the end offset of each partition. Raises BrokerUnreachableError."""
    offsets = TopicOffsets(settings, topics)
    begin_offsets, end_offsets = offsets.at(OffsetSpec.earliest()), offsets.at(OffsetSpec.latest())  # type: ignore[no-untyped-call]
    return {partition: (begin_offsets[partition].offset, end_offsets[partition].offset) for partition in begin_offsets}


def first_offsets(settings: KafkaSettings, topics: list[TopicIdentity]) -> Positions:
    """Return the first offset of each partition. Raises BrokerUnreachableError."""
    found = TopicOffsets(settings, topics).at(OffsetSpec.earliest())  # type: ignore[no-untyped-call]
    return {partition: one.offset for partition, one in found.items()}


def first_records(
    settings: KafkaSettings, topics: list[TopicIdentity], since_ms: int
) -> dict[Partition, ListOffsetsResultInfo]:
    """Return offset and time of the first record of each partition since a time. The offset is -1 without such a one.

    Raises BrokerUnreachableError.
    """
    return TopicOffsets(settings, topics).at(OffsetSpec.for_timestamp(since_ms))


def offsets_since(settings: KafkaSettings, topics: list[TopicIdentity], since_ms: int) -> dict[tuple[str, int], int]:
    """Return the offset of the first record of each partition since that time; its end offset if all are older.

    Raises BrokerUnreachableError.
    """
    offsets = TopicOffsets(settings, topics)
    end_offsets, found = offsets.at(OffsetSpec.latest()), offsets.at(OffsetSpec.for_timestamp(since_ms))  # type: ignore[no-untyped-call]
    return {
        partition: one.offset if one.offset >= 0 else end_offsets[partition].offset for partition, one in found.items()
    }


def compared(
    positions: Positions,
    end_offsets: Mapping[tuple[str, int], ListOffsetsResultInfo],
    first_recent: Mapping[tuple[str, int], ListOffsetsResultInfo],
    *,
    is_first: bool,
) -> Backlog:
    """Return the backlog of these positions. `first_recent` is the first record of each partition that is not old."""
    unread = {partition: max(0, end_offsets[partition].offset - position) for partition, position in positions.items()}
    # The offset is -1 where a partition has no recent record: then all that is unread is old.
    old = any(
        unread[partition] and not positions[partition] >= found.offset >= 0 for partition, found in first_recent.items()
    )
    return Backlog(sum(unread.values()), is_first, old)


def committed_positions(checkpoint: CheckpointFolder) -> Positions | None:
    """Return the positions after the last committed batch; None without one."""
    batch = last_batch(checkpoint)
    content = None if batch is None else checkpoint.read(f"{OFFSETS}/{batch}")
    return None if content is None else parsed(content)


def committed_watermark(checkpoint: CheckpointFolder) -> int | None:
    """Return the watermark of the last committed batch, in milliseconds since 1970; None without one."""
    batch = last_batch(checkpoint)
    content = None if batch is None else checkpoint.read(f"{OFFSETS}/{batch}")
    return int(json.loads(content.splitlines()[1])["batchWatermarkMs"]) or None if content else None


def last_batch(checkpoint: CheckpointFolder) -> int | None:
    """Return the number of the last committed batch; None where there is none."""
    return max((int(name) for name in checkpoint.names(COMMITS) if name.isdecimal()), default=None)


def parsed(offsets: str) -> Positions:
    """Return the positions in a file of Spark's offset log: its version, its metadata, and a line for each source."""
    sources: list[dict[str, dict[str, int]]] = [json.loads(line) for line in offsets.splitlines()[2:] if line != "-"]
    return {
        (topic, int(number)): offset
        for source in sources
        for topic, partitions in source.items()
        for number, offset in partitions.items()
    }


class TopicOffsets:
    """Looks offsets up in all partitions of the topics."""

    def __init__(self, settings: KafkaSettings, topics: list[TopicIdentity]) -> None:
        self._admin = create_admin_client(settings.client(), "job")
        self._kafka = settings.kafka
        self._partitions = [
            TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)
        ]

    def ends(self) -> Positions:
        """Return the end offset of each partition. Raises BrokerUnreachableError."""
        found = self.at(OffsetSpec.latest())  # type: ignore[no-untyped-call]
        return {partition: end.offset for partition, end in found.items()}

    def at(self, spec: OffsetSpec) -> dict[tuple[str, int], Any]:
        """Return the offset, and its record's time, of each partition. Raises BrokerUnreachableError."""
        patient = Retrying(
            retry=retry_if_exception(_has_no_leader_yet),
            stop=stop_after_delay(PATIENCE_S),
            wait=wait_fixed(RETRY_S),
            reraise=True,
        )
        try:
            return patient(self._list, spec)
        except KafkaException as error:
            raise BrokerUnreachableError(self._kafka, error.args[0].str()) from error

    def _list(self, spec: OffsetSpec) -> dict[tuple[str, int], Any]:
        futures = self._admin.list_offsets(dict.fromkeys(self._partitions, spec), request_timeout=PATIENCE_S)
        return {(one.topic, one.partition): future.result() for one, future in futures.items()}


def _has_no_leader_yet(error: BaseException) -> bool:
    """Return whether a partition's leader is being chosen, as in a new topic: the next request finds it."""
    return isinstance(error, KafkaException) and error.args[0].code() in NO_LEADER
