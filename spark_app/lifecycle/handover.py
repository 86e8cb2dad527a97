"""The handover from one job to the next: the last snapshot of the former one, and the time until the next snapshot.

Partitions are added in between, and then the newest snapshots are copies. So the time of the last one of the job is
stored in the folder of the generation until that is active.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

from pydantic import BaseModel, ValidationError

from contracts.model.application import Application
from contracts.settings import KafkaSettings
from contracts.wire import decode_snapshot
from services.runtime.errors import KafkaOperationError
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.reader import BlockingKafkaReader
from services.runtime.kafka.values import NEWEST, EndlessRange
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.errors import BrokerUnreachableError
from spark_app.topics.identity import TopicIdentity
from spark_app.topics.offsets import Positions, TopicOffsets

CLIENT = "rebuild"
"""The name of the Kafka clients."""
FILE = "stateloop.handover"


class StoredHandover(BaseModel):
    """The result of an interrupted activation, which the next one continues with."""

    partitions: int
    """The number of partitions of the snapshots."""
    last_ms: int | None


def stored_handover(folder: CheckpointFolder) -> StoredHandover | None:
    """Return the result of an interrupted activation. A part of it is none: it is whole before partitions are added."""
    with suppress(ValidationError):
        return StoredHandover.model_validate_json(folder.read(FILE) or "")
    return None


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
        with _errors(settings):
            partitions = KafkaAdmin(settings.client(), CLIENT).partition_counts()[name]
        offsets = TopicOffsets(settings, [TopicIdentity(name, "", partitions)])
        end_offsets, newest = offsets.ends(), offsets.at(NEWEST)
        last = max((record.timestamp_ms for record in newest.values()), default=-1)
        handover = StoredHandover(partitions=partitions, last_ms=last if last >= 0 else None)
        before = stored_handover(folder)
        if before and before.partitions < partitions:
            handover = before
        else:
            folder.overwrite(FILE, handover.model_dump_json())
        return cls(end_offsets, handover.last_ms)

    @staticmethod
    def finish(folder: CheckpointFolder) -> None:
        """Delete the stored file, when the generation is active."""
        folder.delete(FILE)

    def await_epoch(self, settings: KafkaSettings, application: Application, epoch: int) -> timedelta | None:
        """Wait for the first snapshot of this epoch; return the time since the last one of the former job.

        Raises BrokerUnreachableError.
        """
        reader = BlockingKafkaReader(settings.client(), CLIENT)
        try:
            with _errors(settings):
                partitions = reader.partitions([application.topics.snapshots])
                ranges = {partition: EndlessRange(self.positions.get(partition, 0)) for partition in partitions}
                written_ms = next(
                    record.timestamp_ms
                    for records in reader.read(ranges)
                    for record in records
                    if record.value is not None and decode_snapshot(record.value).epoch >= epoch
                )
        finally:
            reader.close()
        return None if self.last_ms is None else timedelta(milliseconds=written_ms - self.last_ms)


@contextmanager
def _errors(settings: KafkaSettings) -> Iterator[None]:
    try:
        yield
    except KafkaOperationError as error:
        raise BrokerUnreachableError(settings.kafka, error.detail) from error
