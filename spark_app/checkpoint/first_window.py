"""The first window of a state that has all its events: the job publishes no window that begins before it.

A state is built from the records that a topic still has, or from those since a time. A window that begins before these
lacks records, and the snapshots that were published of it, perhaps as final, have more.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from contracts.errors import StateloopError
from contracts.model.application import Application
from contracts.settings import KafkaSettings
from services.runtime.kafka.values import OffsetAt, Partition
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.unpublished_windows import store_missing
from spark_app.topics.identity import TopicIdentity, identify_topic
from spark_app.topics.offsets import EARLIEST_MS, first_offsets, first_records

MILLISECOND = timedelta(milliseconds=1)


def require_whole_windows(  # noqa: PLR0913  # where, of what, since when, and to whom
    folder: CheckpointFolder,
    settings: KafkaSettings,
    application: Application,
    topics: list[TopicIdentity],
    warn: Callable[[str], object],
    *,
    since_ms: int = EARLIEST_MS,
) -> None:
    """Store which windows a state is missing events of, when it is built from the records since a time, and warn.

    Answers have no part in it: a worker requests those that are missing. Raises BrokerUnreachableError.
    """
    events = [topic for topic in topics if topic.name == application.topics.events]
    first = first_records(settings, events, since_ms)
    times = [last_unread(first_offsets(settings, events), first, since_ms)]
    raw = _raw_topics(settings, application)
    if raw and since_ms == EARLIEST_MS:
        times.append(last_undecoded(first_offsets(settings, raw), first_records(settings, raw, EARLIEST_MS), first))
    unread = max((time for time in times if time is not None), default=None)
    until = None if unread is None else unread + application.skew // MILLISECOND
    store_missing(folder, until)
    if until is not None:
        warn(unpublished(until))


def last_unread(
    begin_offsets: Mapping[tuple[str, int], int], first: Mapping[Partition, OffsetAt], since_ms: int
) -> int | None:
    """Return the latest time that a record before the first ones may have, in milliseconds; None if there is none.

    `first` are the first records since that time; the offset is -1 where there is none. A partition from which all
    records were deleted counts as one without records: its retention has deleted older records than the others'.
    """
    times = [
        record.timestamp_ms if record.offset == begin_offsets[partition] else since_ms
        for partition, record in first.items()
        if record.offset > 0 or (record.offset < 0 and since_ms > EARLIEST_MS)
    ]
    return max(times, default=None)


def last_undecoded(
    begin_offsets: Mapping[tuple[str, int], int],
    first: Mapping[Partition, OffsetAt],
    events: Mapping[Partition, OffsetAt],
) -> int | None:
    """Return the latest time of a raw record that was deleted before it was decoded, in milliseconds; None without one.

    An event has the time of its raw record: if there are earlier events than raw records, these were decoded in time.
    """
    times = [
        record.timestamp_ms for partition, record in first.items() if 0 < record.offset == begin_offsets[partition]
    ]
    decoded = [event.timestamp_ms for event in events.values() if event.offset >= 0]
    return None if not times or (decoded and min(decoded) < min(times)) else max(times)


def _raw_topics(settings: KafkaSettings, application: Application) -> list[TopicIdentity]:
    """Return the topics of raw records. The job of a raw source reports one that it cannot read."""
    topics = []
    for raw in application.raw:
        with suppress(StateloopError):
            topics.append(identify_topic(settings, application, raw.topic))
    return topics


def unpublished(until: int) -> str:
    """Return the warning about the windows that are not published."""
    time = datetime.fromtimestamp(until / 1000, UTC)
    return (
        f"windows that begin at {time:%Y-%m-%d %H:%M:%S} UTC or before are not published: the state is built without "
        "their first events"
    )
