"""Restores a savepoint onto other topics with the same names: on another cluster, or made anew from a backup.

Ids and offsets differ there, so the positions in the copied checkpoint are replaced by those of a plan. State,
watermark and the digests of duplicates stay as they are.
"""

from collections.abc import Mapping

from contracts.model.application import Application
from contracts.model.topics import Stamp
from contracts.settings import KafkaSettings
from spark_app.checkpoint.commit_log import move
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.identity import CheckpointIdentity
from spark_app.lifecycle.errors import RecordsLostError, RestoreRefusedError
from spark_app.lifecycle.savepoint import Leased, Savepoint, copy_checkpoint, occupied, positions, read
from spark_app.lifecycle.start_offsets import BROKER_CLOCKS, FormerEnd, PartitionCopy, StartAt, StartPlan, plan
from spark_app.topics.identity import TopicIdentity
from spark_app.topics.offsets import EARLIEST_MS, Positions, TopicOffsets, offset_ranges

CLOCKS_MS = round(BROKER_CLOCKS.total_seconds() * 1000)
RAW = (
    "it decodes raw topics, whose records have new positions there and count as new events: move when all are decoded, "
    "onto empty topics, with --other-topics beginning"
)


def restore_onto(  # noqa: PLR0913, PLR0917  # from where, to where, onto what, how
    source: CheckpointFolder,
    checkpoint: CheckpointFolder,
    application: Application,
    mine: CheckpointIdentity,
    copies: Mapping[tuple[str, int], PartitionCopy],
    start: StartAt | Positions,
    least_epoch: int,
    leased: Leased,
    *,
    accepts_loss: bool,
) -> tuple[Savepoint, StartPlan]:
    """Create a checkpoint from a savepoint, whose job reads `copies` of its topics; return both plan and savepoint.

    Raises RestoreRefusedError, RecordsLostError unless `accepts_loss`, UnreadableSavepointError, and what `leased`
    raises if a job may run.
    """
    savepoint = read(source)
    ends, events = former_ends(application, savepoint), application.topics.events
    made = plan(ends, copies, start, events, deduplicates=application.deduplicate)
    reasons = [*mine.differences(savepoint.identity.on_topics(mine.topics)), *made.refusals]
    if application.raw and start is not StartAt.BEGINNING:
        reasons.append(RAW)
    reasons += occupied(checkpoint)
    if reasons:
        raise RestoreRefusedError(source.path, reasons)
    if made.losses and not accepts_loss:
        raise RecordsLostError(source.path, made.losses)
    copy_checkpoint(source, checkpoint, mine, savepoint, least_epoch, leased, lambda: move(checkpoint, made.offsets))
    return savepoint, made


def former_ends(application: Application, savepoint: Savepoint) -> dict[tuple[str, int], FormerEnd]:
    """Return the end of each partition in the state. Times that the producers have stamped are no order."""
    stamped = {topic.name for topic in application.catalogue() if topic.stamp is Stamp.BROKER}
    last, following = positions(savepoint.last_times), positions(savepoint.next_times)
    return {
        partition: FormerEnd(position, last.get(partition), following.get(partition))
        if partition[0] in stamped
        else FormerEnd(position)
        for partition, position in savepoint.positions.items()
    }


def partition_copies(
    settings: KafkaSettings, topics: list[TopicIdentity], ends: Mapping[tuple[str, int], FormerEnd]
) -> dict[tuple[str, int], PartitionCopy]:
    """Look the partitions up, with the places of these times. Raises BrokerUnreachableError."""
    offsets = TopicOffsets(settings, topics)
    ranges, first = offset_ranges(settings, topics), offsets.at(EARLIEST_MS)
    complete = {partition: end.complete_ms for partition, end in ends.items() if end.complete_ms is not None}
    last = {partition: end.last_ms for partition, end in ends.items() if end.last_ms is not None}
    since = offsets.since({partition: time - CLOCKS_MS for partition, time in complete.items()})
    lacked = offsets.since({partition: time + 1 for partition, time in complete.items()})
    after = offsets.since({partition: time + 1 for partition, time in last.items()})
    return {
        partition: PartitionCopy(
            *ranges[partition],
            record.timestamp_ms if record.offset >= 0 else None,
            since[partition],
            lacked[partition],
            after[partition],
        )
        for partition, record in first.items()
    }
