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


@dataclass
class RecordTimes:
    """Times in milliseconds since 1970, by partition, where they are known."""

    last: Positions = field(default_factory=dict)
    """The time of the last record before a position."""
    next: Positions = field(default_factory=dict)
    """The time of the record at a position."""


def record_times(settings: KafkaSettings, positions: Positions) -> RecordTimes:
    """Return the times of the records around positions.

    There is none of a record that the topic does not have, and none that cannot be read within some seconds.
    """
    times, deadline = RecordTimes(), time.monotonic() + PATIENCE_S
    reader = BlockingKafkaReader(settings.client(), NAME)
    try:
        bounds = reader.bounds([Partition(*partition) for partition in positions], PATIENCE_S)
        for partition, (_, end) in bounds.items():
            position = positions[partition]
            near = range(max(0, position - MARKERS), min(end, position + 1))
            if near and position <= end:
                for record in reader.at(partition, near, lambda: time.monotonic() < deadline):
                    (times.last if record.offset < position else times.next)[partition] = record.timestamp_ms
    except KafkaOperationError:
        return times
    finally:
        reader.close()
    return times
