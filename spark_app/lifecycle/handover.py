"""The handover from one job to the next: the last snapshot of the former one, and the time until the next snapshot.

Partitions are added in between, and then the newest snapshots are copies. So the time of the last one of the job is
stored in the folder of the generation until that is active.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec
from pydantic import BaseModel

from contracts.model.application import Application
from contracts.settings import KafkaSettings
from contracts.wire import decode_snapshot
from services.runtime.kafka.options import create_consumer
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.errors import BrokerUnreachableError
from spark_app.topics.identity import PATIENCE_S, TopicIdentity
from spark_app.topics.offsets import Positions, TopicOffsets

GROUP = "stateloop-rebuild"
"""The client requires a group id; it joins no group."""
POLL_S = 0.5
FILE = "stateloop.handover"


class StoredHandover(BaseModel):
    """The result of an interrupted activation, which the next one continues with."""

    partitions: int
    """The number of partitions of the snapshots."""
    last_ms: int | None


@dataclass(frozen=True)
class Handover:
    """The end of the snapshots of a job that has stopped."""

    positions: Positions
    """The end of each partition."""
    last_ms: int | None
    """The broker's time of the last snapshot; None without one."""

    @classmethod
    def begin(cls, settings: KafkaSettings, application: Application, folder: CheckpointFolder) -> "Handover":
        """Read the end of the topic of snapshots, and store it in the folder until `finish`.

        Raises BrokerUnreachableError.
        """
        name = application.topics.snapshots
        with _consumer(settings) as consumer:
            partitions = _partitions(consumer, name)
        offsets = TopicOffsets(settings, [TopicIdentity(name, "", partitions)])
        end_offsets, newest = offsets.at(OffsetSpec.latest()), offsets.at(OffsetSpec.max_timestamp())  # type: ignore[no-untyped-call]
        last = max((one.timestamp for one in newest.values()), default=-1)
        found = StoredHandover(partitions=partitions, last_ms=last if last >= 0 else None)
        stored = folder.read(FILE)
        if stored and (before := StoredHandover.model_validate_json(stored)).partitions < partitions:
            found = before
        else:
            folder.overwrite(FILE, found.model_dump_json())
        return cls({partition: one.offset for partition, one in end_offsets.items()}, found.last_ms)

    @staticmethod
    def finish(folder: CheckpointFolder) -> None:
        """Delete the stored file, when the generation is active."""
        folder.delete(FILE)

    def await_epoch(self, settings: KafkaSettings, application: Application, epoch: int) -> timedelta | None:
        """Wait for the first snapshot of this epoch; return the time since the last one of the former job.

        Raises BrokerUnreachableError.
        """
        name = application.topics.snapshots
        with _consumer(settings) as consumer:
            partitions = [(name, number) for number in range(_partitions(consumer, name))]
            consumer.assign([TopicPartition(*partition, self.positions.get(partition, 0)) for partition in partitions])
            while True:
                message = consumer.poll(POLL_S)
                if message is None or message.error() is not None or (value := message.value()) is None:
                    continue
                if decode_snapshot(value).epoch >= epoch:
                    stamp = message.timestamp()[1]
                    return None if self.last_ms is None else timedelta(milliseconds=stamp - self.last_ms)


@contextmanager
def _consumer(settings: KafkaSettings) -> Iterator[Consumer]:
    consumer = create_consumer(settings.client(), "rebuild", GROUP, {"auto.offset.reset": "earliest"})
    try:
        yield consumer
    except KafkaException as error:
        raise BrokerUnreachableError(settings.kafka, error.args[0].str()) from error
    finally:
        consumer.close()


def _partitions(consumer: Consumer, topic: str) -> int:
    return len(consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions)
