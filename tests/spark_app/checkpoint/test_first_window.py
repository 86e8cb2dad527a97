"""Windows whose first events are not read any more: a rebuild and a new checkpoint leave what was published of them."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, cast

import orjson
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from contracts import Emit
from contracts.model.topics import Stamp
from contracts.wire import Snapshot, decode_snapshot
from contracts.wire.partition import partition
from services.runtime.kafka.values import OffsetAt, Partition
from services.tools.cli.verify import is_published
from services.tools.verify.comparison import Stored, StoredSnapshots, compare, snapshots_of
from spark_app.checkpoint.commit_files import commit_files
from spark_app.checkpoint.commit_log import COMMITS, OFFSETS, committed_watermark, forget, last_batch
from spark_app.checkpoint.first_window import (
    last_undecoded,
    last_unread,
    require_whole_windows,
)
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.unpublished_windows import (
    BEGINNING,
    StartRange,
    UnpublishedWindows,
    store_windows,
    stored_windows,
)
from spark_app.lifecycle.published_state import PublishedState
from spark_app.settings import JobSettings
from spark_app.topics.identity import identify
from spark_app.topics.offsets import EARLIEST_MS
from spark_app.topics.times import STAMP, TopicTimes
from tests.spark_app.hosted import HostedJob, done
from tests.spark_app.hourly import FORMER, MINUTE, NOW, PRESENT, application, departure
from tests.spark_app.running import PARTITIONS, PATIENCE_S, Topics, everything, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_app.lifecycle.savepoint import Savepoint
    from tests.services.tools.broker.embedded import EmbeddedBroker

AIRPORTS = ("JFK", "LGA")
WHOLE, SO_FAR = 60, 29
"""The departures of the former hour, and of the present one until now."""


class Airports:
    """Topics with a departure a minute of two airports since the former hour began, and the job that reads them."""

    def __init__(self, spark: SparkSession, broker: EmbeddedBroker, prefix: str, folder: Path, emit: Emit) -> None:
        self.topics = Topics(broker.bootstrap, application(prefix, replay=True))
        self.environment = {"HOURLY_PREFIX": prefix, "HOURLY_EMIT": emit, "STATELOOP_CATCH_UP": "true"}
        self.job = HostedJob(spark, broker.bootstrap, folder, "tests.spark_app.hourly:app", self.environment)
        self.depart(*(FORMER + number * MINUTE for number in range(WHOLE + SO_FAR)))
        times = TopicTimes(JobSettings(application="", kafka=broker.bootstrap), self.topics.names.events)
        times.change({STAMP: Stamp.BROKER.value})
        until(lambda: times.current()[STAMP] == Stamp.BROKER, "a topic that the broker stamps")

    def depart(self, *times: datetime) -> None:
        """Send a departure of each airport at each of these times."""
        self.topics.send(self.topics.names.events, (departure(airport, time) for time in times for airport in AIRPORTS))

    def delete_first(self, count: int) -> None:
        """Delete the first records of each airport, as the topic's retention does."""
        admin = AdminClient({"bootstrap.servers": self.topics.kafka})
        keys = Counter(partition(airport.encode(), PARTITIONS) for airport in AIRPORTS)
        ends = [TopicPartition(self.topics.names.events, number, count * keys[number]) for number in keys]
        for deleted in admin.delete_records(ends).values():
            deleted.result(PATIENCE_S)

    def published(self) -> list[Snapshot]:
        """Return all snapshots, in the order of the topic."""
        messages = everything(self.topics.kafka, self.topics.names.snapshots)
        return [decode_snapshot(message.value() or b"") for message in messages]

    def flights(self, epoch: int = 0) -> dict[tuple[str, datetime], int]:
        """Return what readers show of each window, or of the windows of an epoch."""
        ordered = sorted(
            (snapshot for snapshot in self.published() if snapshot.epoch >= epoch), key=lambda snapshot: snapshot.order
        )
        return {snapshot.window: snapshot.state["flights"] for snapshot in ordered}


def windows(former: int, present: int) -> dict[tuple[str, datetime], int]:
    """Return these departures of each airport by the hour."""
    return {(airport, start): count for airport in AIRPORTS for start, count in ((FORMER, former), (PRESENT, present))}


@pytest.fixture
def airports(
    spark: SparkSession, broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Airports]:
    """Give the topics, and the job of this emit mode, not yet started."""
    emit: Emit = getattr(request, "param", Emit.EVENT)
    running = Airports(spark, broker, topics_prefix, tmp_path, emit)
    yield running
    running.job.stop()


@pytest.mark.kafka
@pytest.mark.spark
def test_a_rebuild_leaves_the_windows_that_it_reads_in_part(spark: SparkSession, airports: Airports) -> None:
    airports.job.start()
    until(lambda: airports.flights() == windows(WHOLE, SO_FAR), "all windows")
    folder = CheckpointFolder(spark, str(airports.job.checkpoint))
    over = (FORMER.timestamp() + 1) * 1000
    until(lambda: (committed_watermark(folder) or 0) > over, "a watermark by the clock")
    airports.job.stop()
    output = done(spark, airports.environment | airports.job.environment, "rebuild")
    assert "UTC or before are not published" in output
    airports.job.start()
    epoch = airports.job.epoch()
    until(lambda: airports.flights(epoch), "the present hour of the new epoch")
    airports.depart(NOW - timedelta(seconds=1))
    until(lambda: set(airports.flights(epoch).values()) == {SO_FAR + 1}, "one more departure")
    assert airports.flights() == windows(WHOLE, SO_FAR + 1)
    assert {start for _, start in airports.flights(epoch)} == {PRESENT}
    repeated = Counter(
        (snapshot.window, snapshot.order) for snapshot in airports.published() if snapshot.epoch >= epoch
    )
    assert set(repeated.values()) == {1}, "each window is published once"


@pytest.mark.kafka
@pytest.mark.spark
def test_a_new_checkpoint_leaves_the_windows_whose_first_events_are_deleted(
    spark: SparkSession, airports: Airports
) -> None:
    airports.job.start()
    until(lambda: airports.flights() == windows(WHOLE, SO_FAR), "all windows")
    airports.job.stop()
    first = airports.job.epoch()
    airports.job.lose_checkpoint()
    airports.delete_first(9)
    airports.job.start()
    until(lambda: airports.flights(first + 1), "the present hour of the new epoch")
    airports.depart(NOW - timedelta(seconds=1))
    until(lambda: set(airports.flights(first + 1).values()) == {SO_FAR + 1}, "one more departure")
    assert airports.flights() == windows(WHOLE, SO_FAR + 1)
    (warning,) = (line["problem"] for line in airports.job.lines("warning") if "are not published" in line["problem"])
    assert f"{FORMER + 10 * MINUTE:%Y-%m-%d %H:%M:%S}" in warning
    copied = list(commit_files(CheckpointFolder(spark, str(airports.job.checkpoint)), 0))
    assert "stateloop.first_window" in copied, "a savepoint has it too"


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize("airports", [Emit.CLOSE], indirect=True)
def test_a_rebuild_closes_no_window_again(spark: SparkSession, airports: Airports) -> None:
    airports.job.start()
    closed = {(airport, FORMER): WHOLE for airport in AIRPORTS}
    until(lambda: airports.flights() == closed, "closed windows")
    airports.job.batches(2)
    airports.job.stop()
    done(spark, airports.environment | airports.job.environment, "rebuild")
    require_no_window_again(airports, closed)
    airports.job.stop()  # in one Spark, a copy of a running query stops it
    state = done(spark, airports.environment | airports.job.environment, "state", "get", AIRPORTS[0])
    rows = [orjson.loads(line) for line in state.splitlines() if line.startswith("{")]
    exported = [(datetime.fromisoformat(row["window_start"]), row["state"]["flights"]) for row in rows]
    assert exported == [(PRESENT, SO_FAR)]


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize("airports", [Emit.CLOSE], indirect=True)
def test_a_rollback_closes_no_window_again(spark: SparkSession, airports: Airports) -> None:
    """The job of the former generation had stopped before the windows were over."""
    closed = {(airport, FORMER): WHOLE for airport in AIRPORTS}
    environment = airports.environment | airports.job.environment
    airports.job.start()
    until(lambda: airports.flights() == closed, "closed windows")
    airports.job.batches(2)
    airports.job.stop()
    done(spark, environment, "rebuild")
    former = CheckpointFolder(spark, str(airports.job.checkpoint))
    go_behind(former)
    assert "Replace the workers by those of that release first" in done(spark, environment, "rebuild", "--rollback")
    require_no_window_again(airports, closed)


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize("airports", [Emit.CLOSE], indirect=True)
def test_a_rollback_closes_a_window_of_which_the_rebuilt_state_lacks_events(
    spark: SparkSession, airports: Airports
) -> None:
    """The job of the former generation had stopped before the window was over, and no other one publishes it."""
    environment = airports.environment | airports.job.environment
    airports.job.start()
    until(lambda: airports.flights() == {(airport, FORMER): WHOLE for airport in AIRPORTS}, "closed windows")
    airports.job.stop()
    first = airports.job.epoch()
    go_behind(CheckpointFolder(spark, str(airports.job.checkpoint)))
    airports.delete_first(9)
    assert "UTC or before are not published" in done(spark, environment, "rebuild", "--accept-missing")
    done(spark, environment, "rebuild", "--rollback")
    airports.job.start()
    until(
        lambda: airports.flights(first + 1) == {(airport, FORMER): WHOLE for airport in AIRPORTS},
        "the closed windows of the former generation",
    )


def require_no_window_again(airports: Airports, closed: dict[tuple[str, datetime], int]) -> None:
    """Start the job, and require that these windows have one snapshot each when they are over by its watermark."""
    before = len(airports.job.lines("batch"))
    airports.job.start()
    over = FORMER.isoformat()
    until(
        lambda: any((line["watermark"] or "") > over for line in airports.job.lines("batch")[before:]),
        "a watermark behind the closed window",
    )
    airports.job.batches(2)
    assert airports.flights() == closed
    assert len(airports.published()) == len(closed)


def go_behind(folder: CheckpointFolder) -> None:
    """Forget the batches since the former hour was over by the watermark: Spark has the states before them."""
    while (committed_watermark(folder) or 0) >= FORMER.timestamp() * 1000:
        forget(folder, COMMITS, last_batch(folder) or 0)
    for batch in [int(name) for name in folder.names(OFFSETS) if name.isdecimal()]:
        if batch > (last_batch(folder) or 0):
            forget(folder, OFFSETS, batch)


def at(offset: int, timestamp: int) -> OffsetAt:
    """A record's offset and time."""
    return OffsetAt(offset, timestamp)


@pytest.mark.parametrize(
    ("begin", "first", "since_ms", "expected"),
    [
        pytest.param(0, at(0, 700), EARLIEST_MS, None, id="a topic that has lost no record"),
        pytest.param(5, at(5, 700), EARLIEST_MS, 700, id="a topic that has lost its first records"),
        pytest.param(0, at(3, 700), 600, 600, id="records before the time are not read"),
        pytest.param(3, at(3, 700), 600, 700, id="records after the time are lost"),
        pytest.param(0, at(-1, -1), 600, 600, id="all records are older"),
        pytest.param(5, at(-1, -1), EARLIEST_MS, None, id="all records are deleted"),
    ],
)
def test_the_last_record_that_is_not_read(begin: int, first: OffsetAt, since_ms: int, expected: int | None) -> None:
    place, young = Partition("events", 0), Partition("events", 1)
    assert last_unread({place: begin, young: 0}, {place: first, young: at(0, 900)}, since_ms) == expected


@pytest.mark.parametrize(
    ("decoded", "expected"),
    [
        pytest.param([], 800, id="no raw record was decoded before"),
        pytest.param([700], 800, id="decoding began with the first ones that are left"),
        pytest.param([650, 900], None, id="they were decoded before they were deleted"),
    ],
)
def test_the_last_raw_record_that_was_deleted_before_it_was_decoded(decoded: list[int], expected: int | None) -> None:
    begin: dict[tuple[str, int], int] = {Partition("raw", number): offset for number, offset in enumerate((5, 7, 0))}
    first = dict(enumerate((at(5, 700), at(7, 800), at(0, 900))))
    events = {Partition("events", number): at(0, time) for number, time in enumerate(decoded)}
    assert (
        last_undecoded(begin, {Partition("raw", number): record for number, record in first.items()}, events)
        == expected
    )
    assert last_undecoded({("raw", 0): 0}, {Partition("raw", 0): at(0, 700)}, events) is None


@pytest.mark.kafka
@pytest.mark.spark
def test_a_state_that_has_read_nothing_leaves_out_what_is_closed(
    spark: SparkSession, broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    """Since its activation; what its state lacks is found again, in the present topics."""
    app, folder = application(topics_prefix, Emit.CLOSE), CheckpointFolder(spark, str(tmp_path))
    _ = Topics(broker.bootstrap, app)
    settings, warnings = JobSettings(application="", kafka=broker.bootstrap), list[str]()
    closed = (StartRange(BEGINNING, 7),)
    store_windows(folder, UnpublishedWindows(missing=9, closed=closed))
    require_whole_windows(folder, settings, app, identify(settings, app), warnings.append)
    assert stored_windows(folder) == UnpublishedWindows(closed=closed)
    assert not warnings


@pytest.mark.parametrize(("after", "differences"), [(-1, 0), (1, 1)])
def test_a_window_that_the_job_does_not_publish_is_no_difference(after: int, differences: int) -> None:
    """A snapshot of a former epoch is on the topic, and not in the checkpoint."""
    snapshot = Snapshot(device_id="JFK", first_seen=PRESENT, version=1, as_of=PRESENT, state={})
    topic = StoredSnapshots("topic", {snapshot.window: Stored(snapshot, written=PRESENT)})
    windows = UnpublishedWindows(missing=round(PRESENT.timestamp() * 1000) - after)
    checkpoint = PublishedState(cast("Savepoint", None), NOW, [], frozenset(), windows)
    is_wanted = partial(is_published, lambda _: True, checkpoint)
    comparison = compare(snapshots_of("checkpoint", []), topic, is_wanted, NOW)
    assert (len(comparison.differences), comparison.expired) == (differences, 1 - differences)
