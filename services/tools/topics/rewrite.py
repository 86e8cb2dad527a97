"""Rewrites the topic of a state, after partitions were added to it.

Records whose versions are offsets get the former one in their copies. So each copy has the order of the record that it
replaces, and readers drop what they have seen. Each copy has a header with the number of partitions: instances of the
query service that use fewer skip it.

The copies of a partition are one transaction: after an interruption there are all of them or, for readers and for the
next call, none. A part of them would end with an older value of a key than the next call reads elsewhere, and
compaction keeps what was written last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from contracts.records.state_record import StateRecordDecoder, UndecodableRecordError
from contracts.wire.copy_header import copied_headers
from contracts.wire.partition import partition
from services.runtime.errors import KafkaOperationError
from services.runtime.kafka.values import Output
from services.tools.topics.errors import refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from contracts.model.named_state import NamedState
    from contracts.records.record import Record
    from contracts.wire import OffsetVersioned
    from services.runtime.kafka.interfaces import Kafka

CLIENT = "topics"
"""The name of the Kafka clients."""
NAME = "stateloop-topics"
"""The beginning of the name of a topic's transactions."""
TRANSACTION_MS = 15 * 60 * 1000
"""The duration of a transaction: the longest that a broker allows by default."""
WRITE = {"linger.ms": 20, "message.max.bytes": 64 * 1024 * 1024, "transaction.timeout.ms": TRANSACTION_MS}
LEADERS_S = 30.0
"""The wait for the leaders of partitions that were added a moment ago."""


def rewrite(  # noqa: PLR0913, PLR0917  # a topic of a broker, and its next layout
    kafka: Kafka,
    address: str,
    state: NamedState,
    partitions: int,
    model: type[OffsetVersioned] | None,
    require_lease: Callable[[], object],
) -> None:
    """Write each record again, in the partition of its key, and then delete the old records.

    `model` is the model of records whose versions are offsets. Records of one partition keep their order. Nothing else
    writes to the topic as long as `require_lease` raises nothing. A call that was interrupted may be repeated. Raises
    TopicRefusedError, NoBrokerError, which name the `address` of the brokers.
    """
    reader = kafka.blocking_reader(CLIENT)
    require_lease()  # a new producer ends the transaction of another command
    try:
        producer = kafka.transactional_producer(CLIENT, f"{NAME}-{state.topic}", WRITE)
        bounds = reader.bounds(reader.partitions([state.topic]), LEADERS_S)
        ranges = {partition: offsets for partition, offsets in bounds.items() if offsets.start < offsets.end}
        mover = RecordMover(state, partitions, model)
        for partition, offsets in ranges.items():
            with producer.transaction():
                for records in reader.read({partition: offsets}):
                    for output in mover.copies(records):
                        producer.enqueue(output)
                require_lease()
        require_lease()
        kafka.admin(CLIENT).delete_records({partition: offsets.end for partition, offsets in ranges.items()})
    except KafkaOperationError as error:
        raise refused(state.topic, address, error) from error
    finally:
        reader.close()


class RecordMover:
    """Creates the copies of a state's records.

    Those of records whose versions are offsets are made in the order of the versions: after an interruption, earlier
    copies and the records that they replace are both there.
    """

    def __init__(self, state: NamedState, partitions: int, model: type[OffsetVersioned] | None) -> None:
        self._decoder = StateRecordDecoder(state)
        self._partitions = partitions
        self._model = model
        self._copied: dict[bytes, tuple[int, int]] = {}

    def copies(self, records: Iterable[Record]) -> Iterator[Output]:
        """Yield the copies of records."""
        for record in records:
            if (copy := self.moved(record)) is not None:
                number, value = copy
                headers = copied_headers(record.headers, self._partitions)
                yield Output(record.topic, record.key, value, number, headers=headers)

    def moved(self, record: Record) -> tuple[int, bytes | None] | None:
        """Return partition and value of the copy; None for what no reader reads, and what is copied already."""
        key, value = record.key or b"", record.value
        try:
            if value is None:
                removed = self._decoder.tombstone(key)
                return removed and (self._new_partition(removed.key), None)
            decoded = self._decoder.value(key, value, record.offset, record.timestamp_ms)
            if self._model is not None:
                order = decoded.epoch, decoded.version
                if self._copied.get(key, (-1, -1)) >= order:
                    return None
                value = self._model.model_validate_json(value).moved(decoded.version).encode()
                self._copied[key] = order
        except (UndecodableRecordError, ValidationError):
            return None
        return self._new_partition(decoded.key), value

    def _new_partition(self, key: str) -> int:
        return partition(key.encode(), self._partitions)
