"""The times of the records around positions, as the brokers stamped them."""

import time
from dataclasses import dataclass, field

from contracts.settings import KafkaSettings
from services.runtime.errors import KafkaOperationError
from services.runtime.kafka.reader import BlockingKafkaReader
from services.runtime.kafka.values import Partition
from spark_app.topics.identity import NAME
from spark_app.topics.offsets import Positions

MARKERS = 16
"""The number of offsets to look at: the last ones of a partition may be the markers of transactions."""
PATIENCE_S = 10.0
"""The time for the bounds of all partitions, and then for the records of each one."""


@dataclass
class RecordTimes:
    """Times in milliseconds since 1970, by partition, where they are known."""

    last: Positions = field(default_factory=dict)
    """The time of the last record before a position."""
    next: Positions = field(default_factory=dict)
    """The time of the record at a position."""


def record_times(settings: KafkaSettings, positions: Positions) -> RecordTimes:
    """Return the times of the records around positions.

    There is none of a record that the topic does not have, and none from the partition on that does not answer.
    """
    times = RecordTimes()
    reader = BlockingKafkaReader(settings.client(), NAME)
    try:
        bounds = reader.bounds([Partition(*partition) for partition in positions], PATIENCE_S)
        for partition, (_, end) in bounds.items():
            position = positions[partition]
            near = range(max(0, position - MARKERS), min(end, position + 1))
            if near and position <= end and not _read(reader, partition, near, position, times):
                return times
    except KafkaOperationError:
        return times
    finally:
        reader.close()
    return times


def _read(reader: BlockingKafkaReader, partition: Partition, near: range, position: int, times: RecordTimes) -> bool:
    """Add the times of these records; return whether the partition has answered in time."""
    deadline = time.monotonic() + PATIENCE_S
    for record in reader.at(partition, near, lambda: time.monotonic() < deadline):
        (times.last if record.offset < position else times.next)[partition] = record.timestamp_ms
    return time.monotonic() < deadline
