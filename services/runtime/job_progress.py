"""The progress of a job, recorded in Kafka: metadata of committed offsets of the group `stateloop.progress`.

The offset of a partition of snapshots has a time as its metadata. All records of the input that arrived before that
time are in the snapshots before that offset: their windows do not change by them any more. The job records it when a
batch is committed, so it may be two batches old. A reader that has read up to the offset judges by this time, and not
by its clock, whether a window is over: the job may be down, or may read a backlog.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaException, TopicPartition

from services.runtime.kafka.options import create_consumer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

GROUP = "stateloop.progress"
ANSWER_S = 5.0


class Published(NamedTuple):
    """The end of the snapshots of all records that arrived before a time."""

    offset: int
    time: datetime


class JobProgress:
    """The progress of the job that writes one topic of snapshots. It does nothing while the broker is away."""

    def __init__(self, client: Mapping[str, str], topic: str) -> None:
        self._consumer = create_consumer(client, "progress", GROUP)
        self._topic = topic

    def record(self, time: datetime, end_offsets: Mapping[int, int]) -> None:
        """Record that all records that arrived before a time are in the snapshots before these offsets; do not wait."""
        metadata = time.astimezone(UTC).isoformat()
        places = [TopicPartition(self._topic, *one, metadata=metadata) for one in end_offsets.items()]
        try:
            self._consumer.commit(offsets=places, asynchronous=True)
        except KafkaException:  # the next batch records a later time
            return

    def read(self, numbers: Collection[int]) -> dict[int, Published]:
        """Return the progress in these partitions; nothing for one without."""
        try:
            found = self._consumer.committed([TopicPartition(self._topic, one) for one in numbers], ANSWER_S)
        except KafkaException:
            return {}
        return {
            one.partition: Published(one.offset, datetime.fromisoformat(one.metadata)) for one in found if one.metadata
        }

    def close(self) -> None:
        """Close the client."""
        self._consumer.close()
