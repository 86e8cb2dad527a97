"""The offsets of the application's topics: where each partition begins and ends, and where a time begins in it."""

from collections.abc import Mapping

from contracts.model.application import Application
from contracts.model.topics import Stamp
from contracts.settings import KafkaSettings
from services.runtime.errors import KafkaRequestError
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.values import EARLIEST, LATEST, NEWEST, OffsetAt, Partition
from spark_app.errors import BrokerUnreachableError
from spark_app.topics.identity import NAME, TopicIdentity, sources

EARLIEST_MS = 0
Positions = dict[tuple[str, int], int]
"""The offset of the next record to read, by topic and partition."""


def offset_ranges(settings: KafkaSettings, topics: list[TopicIdentity]) -> dict[tuple[str, int], tuple[int, int]]:
    """Return the first and the end offset of each partition. Raises BrokerUnreachableError."""
    offsets = TopicOffsets(settings, topics)
    begin_offsets, end_offsets = offsets.at(EARLIEST), offsets.at(LATEST)
    return {partition: (begin_offsets[partition].offset, end_offsets[partition].offset) for partition in begin_offsets}


def first_offsets(settings: KafkaSettings, topics: list[TopicIdentity]) -> Positions:
    """Return the first offset of each partition. Raises BrokerUnreachableError."""
    return {partition: begin.offset for partition, begin in TopicOffsets(settings, topics).at(EARLIEST).items()}


def first_records(settings: KafkaSettings, topics: list[TopicIdentity], since_ms: int) -> Mapping[Partition, OffsetAt]:
    """Return offset and time of the first record of each partition since a time. The offset is -1 without such a one.

    Raises BrokerUnreachableError.
    """
    return TopicOffsets(settings, topics).at(since_ms)


def offsets_since(settings: KafkaSettings, topics: list[TopicIdentity], since_ms: int) -> Positions:
    """Return the offset of the first record of each partition since that time; its end offset if all are older.

    Raises BrokerUnreachableError.
    """
    offsets = TopicOffsets(settings, topics)
    return offsets.since(dict.fromkeys(offsets.partitions, since_ms))


class TopicOffsets:
    """Looks offsets up in all partitions of the topics."""

    def __init__(self, settings: KafkaSettings, topics: list[TopicIdentity]) -> None:
        self._admin = KafkaAdmin(settings.client(), NAME)
        self._kafka = settings.kafka
        self.partitions = [Partition(topic.name, number) for topic in topics for number in range(topic.partitions)]

    def ends(self) -> Positions:
        """Return the end offset of each partition. Raises BrokerUnreachableError."""
        return {partition: end.offset for partition, end in self.at(LATEST).items()}

    def at(self, time_ms: int) -> Mapping[Partition, OffsetAt]:
        """Return offset and time of the first record since a time in each partition. Raises BrokerUnreachableError.

        EARLIEST, LATEST and NEWEST stand in place of a time.
        """
        return self._records(dict.fromkeys(self.partitions, time_ms))

    def since(self, times: Mapping[tuple[str, int], int]) -> Positions:
        """Return the offset of the first record of each partition since its time; its end offset if all are older.

        A partition without a time has its first offset. Raises BrokerUnreachableError.
        """
        first_recent = self._records({partition: times.get(partition, EARLIEST) for partition in self.partitions})
        ends = self.ends()
        return {
            partition: record.offset if record.offset >= 0 else ends[partition]
            for partition, record in first_recent.items()
        }

    def _records(self, at: Mapping[Partition, int]) -> Mapping[Partition, OffsetAt]:
        try:
            return self._admin.records(at)
        except KafkaRequestError as error:
            raise BrokerUnreachableError(self._kafka, error.detail) from error


class SourceOffsets(TopicOffsets):
    """Looks offsets up in topics that the application, or a raw source of it, reads.

    Those that the broker stamps show its clock. None shows it where the producer stamps the topic of the heartbeats, as
    in a replay, and with raw sources and no enrichments: without heartbeats, a quiet topic shows a time that is past.
    """

    def __init__(self, settings: KafkaSettings, application: Application, topics: list[TopicIdentity]) -> None:
        super().__init__(settings, topics)
        stamped = {topic.name for topic in application.catalogue() if topic.stamp is Stamp.BROKER}
        shown = stamped if sources(application)[-1] in stamped else set()
        self._stamped = [partition for partition in self.partitions if partition.topic in shown]

    def newest_ms(self) -> int | None:
        """Return the latest timestamp by the broker's clock; -1 without records, None if no topic shows that clock.

        Raises BrokerUnreachableError.
        """
        newest = self._records(dict.fromkeys(self._stamped, NEWEST))
        return max((record.timestamp_ms for record in newest.values()), default=None)
