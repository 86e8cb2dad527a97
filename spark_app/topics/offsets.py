"""The offsets of the application's topics: where each partition begins and ends, and where a time begins in it."""

from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ListOffsetsResultInfo, OffsetSpec
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from contracts.settings import KafkaSettings
from services.runtime.kafka.options import create_admin_client
from spark_app.errors import BrokerUnreachableError
from spark_app.topics.identity import PATIENCE_S, TopicIdentity

EARLIEST_MS = 0
NO_LEADER = {KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION}
RETRY_S = 0.1
"""The pause before offsets are looked up again while a partition has no leader."""
Partition = tuple[str, int]
Positions = dict[Partition, int]
"""The offset of the next record to read, by topic and partition."""


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
