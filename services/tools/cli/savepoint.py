"""Copies the state of the job, lists the copies, and restores one: `stateloop savepoint create|list|restore`."""

from __future__ import annotations

import time
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import NonNegativeInt, TypeAdapter, ValidationError

from contracts.errors import StateloopError
from contracts.settings import read
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.broker_check import require_broker
from services.runtime.topic_owners import TopicOwners
from services.tools.cli.spark import selected, spark_session
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.identity import identity
from spark_app.checkpoint.keeper import kept
from spark_app.checkpoint.lease import SETTLE_S, acquire
from spark_app.checkpoint.owner import this_job
from spark_app.errors import LeaseLostError
from spark_app.lifecycle import savepoint
from spark_app.lifecycle.errors import RestoreInterruptedError, UnreadableOffsetsError, UnreadableSavepointError
from spark_app.lifecycle.other_topics import former_ends, partition_copies, restore_onto
from spark_app.lifecycle.savepoint import positions
from spark_app.lifecycle.start_offsets import StartAt
from spark_app.settings import JobSettings
from spark_app.topics.identity import identify
from spark_app.topics.offsets import offset_ranges
from spark_app.topics.record_times import RecordTimes, record_times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from contracts import Application
    from spark_app.checkpoint.identity import CheckpointIdentity
    from spark_app.lifecycle.savepoint import Savepoint
    from spark_app.topics.offsets import Positions


def create_each(folder: str, name: str | None) -> None:
    """Make a savepoint of all applications, or of the named one. Raises StateloopError, CommandError."""
    settings = read(JobSettings)
    with spark_session(settings) as spark:
        for application, own in selected(settings, name):
            create(spark, application, own, folder)


def restore_one(path: str, name: str | None, other_topics: str | None = None, *, accepts_loss: bool = False) -> None:
    """Restore a savepoint, which is of one application of the suite. Raises StateloopError, CommandError."""
    settings = read(JobSettings)
    require_broker(settings)
    with spark_session(settings) as spark:
        each = selected(settings, name)
        if len(each) > 1:
            each = selected(settings, savepoint.read(CheckpointFolder(spark, path)).application)
        ((application, own),) = each
        if other_topics is None:
            restore(spark, application, own, path)
        else:
            restore_elsewhere(spark, application, own, path, start_at(other_topics), accepts_loss=accepts_loss)


def create(spark: SparkSession, application: Application, settings: JobSettings, folder: str) -> None:
    """Copy the checkpoint's last commit into a new folder below `folder`, and print its path."""
    path = f"{folder.rstrip('/')}/{application.name}-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    checkpoint = CheckpointFolder(spark, settings.checkpoint)
    target = CheckpointFolder(spark, path)
    made = savepoint.create(checkpoint, target, application.name, partial(times, application, settings))
    print(_line(path, made))
    if unknown := untimed(made, application.topics.events):
        print(
            f"warning: it has no times for the partitions {unknown} of {application.topics.events}: their last records "
            "could not be read, so it cannot show what other topics lack"
        )


def untimed(made: Savepoint, events: str) -> list[int]:
    """Return the partitions of events that have records, and no time of the last one."""
    times = made.last_times.get(events, {})
    return [number for number, offset in made.offsets.get(events, {}).items() if offset > 0 and number not in times]


def times(application: Application, settings: JobSettings, stored: CheckpointIdentity, ends: Positions) -> RecordTimes:
    """Return the times of the records around positions, none if the broker is away or has other topics."""
    try:
        topics = {topic.name: topic.facts() for topic in identify(settings, application)}
    except StateloopError:
        return RecordTimes()
    return record_times(settings, ends) if topics == stored.topics else RecordTimes()


def list_each(folder: str, name: str | None) -> None:
    """Print a line for each savepoint in `folder` of all applications, or of the named one, the oldest first.

    Raises StateloopError, CommandError, and after the lines an error for each savepoint that cannot be read.
    """
    settings, unreadable = read(JobSettings), list[UnreadableSavepointError]()
    chosen = [application.name for application, _ in selected(settings, name)]
    with spark_session(settings) as spark:
        open_folder = partial(CheckpointFolder, spark)
        found = [*savepoint.savepoints(open_folder(folder), open_folder, unreadable.append)]
    for application in chosen:
        for path, stored in found:
            if stored.application == application:
                print(_line(path, stored))
    if unreadable:
        raise ExceptionGroup("unreadable savepoints", unreadable)


def restore(spark: SparkSession, application: Application, settings: JobSettings, path: str) -> None:
    """Create the checkpoint from a savepoint. The next start of the job continues from it."""
    topics = identify(settings, application)
    mine = identity(application, topics, settings.state_partitions or topics[0].partitions)
    source, checkpoint = CheckpointFolder(spark, path), CheckpointFolder(spark, settings.checkpoint)
    ranges, epoch = offset_ranges(settings, topics), next_epoch(application, settings)
    restored = savepoint.restore(source, checkpoint, mine, ranges, epoch, partial(leased, spark, checkpoint))
    print(
        f"{settings.checkpoint} is {path} again ({restored.files} files): "
        "start the job, which publishes each window once"
    )


@contextmanager
def leased(spark: SparkSession, checkpoint: CheckpointFolder) -> Iterator[Callable[[], object]]:
    """Have the lease of a checkpoint for a while; give a function that raises LeaseLostError when it is lost.

    Raises CheckpointInUseError, and RestoreInterruptedError instead of LeaseLostError.
    """
    if not checkpoint.is_exclusive:
        reason = f"two processes can create a lease at once on the file system of {checkpoint.path}"
        print(f"waits {SETTLE_S:.0f} s before it copies: {reason}, and one of them gives way in that time", flush=True)
    try:
        lease = acquire(checkpoint, this_job(spark))
        with kept(lease, lambda: False) as require_lease:
            yield require_lease
    except LeaseLostError as error:
        raise RestoreInterruptedError(checkpoint.path, error.owner) from error


def restore_elsewhere(  # noqa: PLR0913  # as `restore`, and how
    spark: SparkSession,
    application: Application,
    settings: JobSettings,
    path: str,
    start: StartAt | Positions,
    *,
    accepts_loss: bool,
) -> None:
    """Create the checkpoint from a savepoint, for topics with other ids, and print where the job begins to read."""
    topics = identify(settings, application)
    mine = identity(application, topics, settings.state_partitions or topics[0].partitions)
    source, checkpoint = CheckpointFolder(spark, path), CheckpointFolder(spark, settings.checkpoint)
    copies = partition_copies(settings, topics, former_ends(application, savepoint.read(source)))
    target, epoch = (source, checkpoint, application, mine, copies, start), next_epoch(application, settings)
    _, made = restore_onto(*target, epoch, partial(leased, spark, checkpoint), accepts_loss=accepts_loss)
    for problem in made.losses:
        print(f"lost: {problem}")
    for note in made.notes:
        print(f"note: {note}")
    for (topic, number), offset in made.offsets.items():
        print(f"{topic} {number} begins at offset {offset}, {copies[topic, number].end - offset} records to read")
    print(f"{settings.checkpoint} is {path} on these topics: start the job, which publishes each window once")


def next_epoch(application: Application, settings: JobSettings) -> int:
    """Return the present time in milliseconds since 1970, or a later one if the clock of a former job was ahead."""
    owners = TopicOwners(application, KafkaAdmin(settings.client(), "topic-owners"), print)
    return max(time.time_ns() // 1_000_000, owners.recorded_epoch() + 1)


def start_at(text: str) -> StartAt | Positions:
    """Return where to begin on other topics: `time`, `beginning`, or the offsets of a file."""
    if text in tuple(StartAt):
        return StartAt(text)
    try:
        return positions(TypeAdapter(dict[str, dict[int, NonNegativeInt]]).validate_json(Path(text).read_bytes()))
    except (OSError, ValidationError) as error:
        problem = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise UnreadableOffsetsError(text, problem) from error


def _line(path: str, stored: Savepoint) -> str:
    size = f"{stored.bytes / 1_000_000:.1f} MB in {stored.files} files"
    place = f"epoch {stored.epoch}  batch {stored.batch}"
    return f"{path}  {stored.created:%Y-%m-%d %H:%M:%S}Z  {stored.application}  {place}  {size}"
