"""The plan of a rebuild, on real topics."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from contracts import Emit
from spark_app.checkpoint.commit_log import COMMITS, OFFSETS
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.generations import activate, activations, active
from spark_app.checkpoint.identity import identity, write
from spark_app.checkpoint.republish import is_republication_due
from spark_app.checkpoint.unpublished_windows import (
    BEGINNING,
    StartRange,
    UnpublishedWindows,
    store_missing,
    store_windows,
    stored_windows,
)
from spark_app.errors import ActivationConflictError
from spark_app.lifecycle.errors import NoGenerationError, PartitionsAddedError
from spark_app.lifecycle.rebuild import CLOCKS, Rebuild
from spark_app.settings import JobSettings
from spark_app.topics.identity import TopicIdentity, identify
from tests import everything
from tests.everything import event_record
from tests.spark_app import hourly
from tests.spark_app.running import PARTITIONS, Topics

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

CLOSED = (StartRange(BEGINNING, 20),)


@pytest.fixture
def checkpoint(spark: SparkSession, tmp_path: Path) -> CheckpointFolder:
    """Give the folder of a checkpoint that is not there."""
    return CheckpointFolder(spark, str(tmp_path / "checkpoint"))


@pytest.fixture
def settings(now_topics: Topics, checkpoint: CheckpointFolder) -> JobSettings:
    """Give the settings of a rebuild on topics that the broker stamps."""
    return JobSettings(kafka=now_topics.kafka, application="", checkpoint=checkpoint.path)


@pytest.fixture
def rebuild(spark: SparkSession, settings: JobSettings) -> Rebuild:
    """Give the rebuild of an application that has no checkpoint."""
    return Rebuild(spark, everything.application(), settings)


@pytest.fixture
def closing(spark: SparkSession, broker: EmbeddedBroker, topics_prefix: str, checkpoint: CheckpointFolder) -> Rebuild:
    """Give the rebuild of an application that publishes windows when they are over."""
    application = hourly.application(topics_prefix, Emit.CLOSE)
    Topics(broker.bootstrap, application)
    return Rebuild(spark, application, JobSettings(kafka=broker.bootstrap, application="", checkpoint=checkpoint.path))


def events(count: int, time: datetime) -> list[dict[str, object]]:
    """Events of as many devices, at one time."""
    return [{"device_id": f"d{n}", "event_id": "1", "first_seen": time, "ts": time} for n in range(count)]


def milliseconds(time: datetime) -> int:
    """Since 1970, as the clock of a rebuild gives them."""
    return round(time.timestamp() * 1000)


def write_watermark(checkpoint: CheckpointFolder, time: datetime) -> None:
    """Write what Spark's logs have of a committed batch with this watermark."""
    checkpoint.overwrite(f"{OFFSETS}/0", f'v1\n{{"batchWatermarkMs":{milliseconds(time)}}}')
    checkpoint.overwrite(f"{COMMITS}/0", "v1")


def write_identity(checkpoint: CheckpointFolder) -> None:
    """Write the identity of a generation to which a rollback goes back."""
    write(checkpoint, identity(everything.application(), [TopicIdentity("events", "id", PARTITIONS)], PARTITIONS), 5)


def test_a_plan_counts_the_records_that_a_live_window_can_have(
    rebuild: Rebuild, checkpoint: CheckpointFolder, now_topics: Topics
) -> None:
    now = datetime.now(UTC)
    now_topics.send(now_topics.names.events, map(event_record, events(10, now)))
    plan = rebuild.plan(milliseconds(now))
    assert (plan.differences, plan.records, plan.missing) == (["there is no checkpoint"], 10, [])
    assert not plan.is_begun
    ten_years = timedelta(days=3650)
    assert rebuild.plan(milliseconds(now + ten_years)).records == 10, "a clock that is ahead"
    old = everything.application().skew + CLOCKS + timedelta(minutes=1)
    for watermark, records in ((now, 10), (now + old, 0)):
        write_watermark(checkpoint, watermark)
        assert rebuild.plan(milliseconds(now)).records == records


def test_without_a_watermark_what_the_generation_leaves_out_counts(
    rebuild: Rebuild, checkpoint: CheckpointFolder, now_topics: Topics
) -> None:
    """It had closed none of its own windows, and publishes none of the former generation's."""
    now = datetime.now(UTC)
    now_topics.send(now_topics.names.events, map(event_record, events(10, now)))
    store_missing(checkpoint, milliseconds(now + timedelta(days=1)))
    assert rebuild.plan(milliseconds(now)).records == 0


def test_a_plan_names_the_deleted_records(rebuild: Rebuild, now_topics: Topics) -> None:
    now = datetime.now(UTC)
    now_topics.send(now_topics.names.events, map(event_record, events(20, now)))
    admin = AdminClient({"bootstrap.servers": now_topics.kafka})
    (deleted,) = admin.delete_records([TopicPartition(now_topics.names.events, 0, 1)]).values()
    deleted.result(30)
    (missing,) = rebuild.plan(milliseconds(now)).missing
    assert missing == f"partition 0 of {now_topics.names.events} begins at offset 1: records before it are gone"


def test_a_build_is_continued_by_its_own_application_only(
    spark: SparkSession, settings: JobSettings, rebuild: Rebuild, checkpoint: CheckpointFolder
) -> None:
    app, now = everything.application(), milliseconds(datetime.now(UTC))
    write(checkpoint.below("generation-1"), identity(app, identify(settings, app), PARTITIONS), 5)
    plan = rebuild.plan(now)
    assert (plan.generation, plan.is_begun) == ("generation-1", True)
    plan = Rebuild(spark, everything.application(deduplicate=False), settings).plan(now)
    assert (plan.generation, plan.is_begun) == (f"generation-{now}", False)


def test_a_build_that_continues_merges_answers_of_later_epochs(
    rebuild: Rebuild, checkpoint: CheckpointFolder, now_topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was interrupted, and meanwhile another generation was activated, with whose epoch workers answer."""
    now = datetime.now(UTC)
    now_topics.send(now_topics.names.events, map(event_record, events(1, now)))
    epochs, active = list[int](), 0

    def interrupted(_spark: object, _application: object, _settings: object, epoch: int, *_: object) -> None:
        epochs.append(epoch)
        raise KeyboardInterrupt

    monkeypatch.setattr("spark_app.lifecycle.rebuild.build", interrupted)
    plan = rebuild.plan(milliseconds(now))
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            rebuild.build(plan, milliseconds(now), print, print)
        active = activate(checkpoint, "generation-2", milliseconds(now) + 5_000, 0).epoch
    assert epochs == [milliseconds(now), active + 1]


def test_the_job_of_an_activated_generation_publishes_each_window(
    rebuild: Rebuild, checkpoint: CheckpointFolder
) -> None:
    activation, _ = rebuild.activate("generation-1", milliseconds(datetime.now(UTC)))
    assert active(checkpoint) == activation
    assert is_republication_due(checkpoint.below("generation-1"))


def test_a_checkpoint_that_was_never_rebuilt_has_no_way_back(rebuild: Rebuild) -> None:
    with pytest.raises(NoGenerationError):
        rebuild.roll_back(rebuild.former(), milliseconds(datetime.now(UTC)))


def test_a_rollback_goes_to_no_other_generation_than_the_one_it_has_named(
    rebuild: Rebuild, checkpoint: CheckpointFolder
) -> None:
    """Else the second of two operators would activate the release again that both want to leave."""
    for folder in (checkpoint, checkpoint.below("generation-1")):
        write_identity(folder)
    activate(checkpoint, "generation-1", 9, 5)
    former = rebuild.former()
    rebuild.roll_back(former, 20)
    with pytest.raises(ActivationConflictError):
        rebuild.roll_back(former, 30)


def test_there_is_no_way_back_to_a_generation_that_is_deleted(rebuild: Rebuild, checkpoint: CheckpointFolder) -> None:
    activate(checkpoint, "generation-1", 9, 5)
    with pytest.raises(NoGenerationError, match="the former one is deleted"):
        rebuild.former()
    assert len(activations(checkpoint)) == 1


def test_there_is_no_way_back_to_fewer_partitions(rebuild: Rebuild, checkpoint: CheckpointFolder) -> None:
    write(checkpoint, identity(everything.application(), [TopicIdentity("events", "id", 1)], 1), 5)
    activate(checkpoint, "generation-1", 9, 5)
    with pytest.raises(PartitionsAddedError, match=f"with 1 partitions, and they have {PARTITIONS}"):
        rebuild.roll_back(rebuild.former(), milliseconds(datetime.now(UTC)))


@pytest.mark.parametrize(
    ("watermark", "windows", "expected"),
    [
        pytest.param(30, UnpublishedWindows(), [StartRange(BEGINNING, 30)], id="it has published windows"),
        pytest.param(
            30, UnpublishedWindows(closed=CLOSED), [StartRange(BEGINNING, 30)], id="more than others have closed"
        ),
        pytest.param(10, UnpublishedWindows(closed=CLOSED), [*CLOSED], id="less than others have closed"),
        pytest.param(
            30, UnpublishedWindows(missing=20), [StartRange(20, 30)], id="it has published those that it has whole"
        ),
        pytest.param(10, UnpublishedWindows(missing=20), [], id="it has published none"),
        pytest.param(None, UnpublishedWindows(missing=20), [], id="it has read nothing"),
        pytest.param(40, UnpublishedWindows(missing=30, closed=CLOSED), [*CLOSED, StartRange(30, 40)], id="and others"),
    ],
)
def test_a_switch_leaves_out_the_windows_that_are_closed(
    closing: Rebuild,
    checkpoint: CheckpointFolder,
    watermark: int | None,
    windows: UnpublishedWindows,
    expected: list[StartRange],
) -> None:
    """The active generation has a watermark, and leaves windows out. The next one is rolled back to, or rebuilt."""
    active, others = checkpoint.below("generation-1"), (checkpoint, checkpoint.below("generation-2"))
    activate(checkpoint, "generation-1", 9, 5)
    store_windows(active, windows)
    if watermark is not None:
        write_watermark(active, datetime.fromtimestamp(watermark / 1000, UTC))
    store_missing(others[1], 50)
    write_identity(checkpoint)
    closing.roll_back(closing.former(), 20)
    assert stored_windows(others[0]) == UnpublishedWindows(closed=tuple(expected))
    activate(checkpoint, "generation-1", 30, 25)
    closing.activate("generation-2", 40)
    assert stored_windows(others[1]) == UnpublishedWindows(missing=50, closed=tuple(expected))


def test_a_rebuild_after_a_rollback_leaves_out_what_the_newer_generation_has_closed(
    closing: Rebuild, checkpoint: CheckpointFolder
) -> None:
    now = datetime.now(UTC)
    for folder, watermark in ((checkpoint, now - timedelta(days=1)), (checkpoint.below("generation-1"), now)):
        write_watermark(folder, watermark)
    write_identity(checkpoint)
    activate(checkpoint, "generation-1", 9, 5)
    closing.roll_back(closing.former(), 20)
    closing.activate("generation-2", 30)
    assert stored_windows(checkpoint.below("generation-2")).closed == ((BEGINNING, milliseconds(now)),)


def test_a_rebuild_reads_no_records_of_windows_that_are_left_out(
    closing: Rebuild, checkpoint: CheckpointFolder, broker: EmbeddedBroker, topics_prefix: str
) -> None:
    """The active generation was rolled back to, and is behind."""
    application, now = hourly.application(topics_prefix, Emit.CLOSE), datetime.now(UTC)
    Topics(broker.bootstrap, application).send(application.topics.events, [hourly.departure("JFK", now)])
    write_watermark(checkpoint, now)
    assert closing.plan(milliseconds(now)).records == 1
    store_windows(
        checkpoint, UnpublishedWindows(closed=(StartRange(BEGINNING, milliseconds(now + timedelta(days=1))),))
    )
    assert closing.plan(milliseconds(now)).records == 0


def test_a_rollback_leaves_no_windows_out_that_are_published_again(
    rebuild: Rebuild, checkpoint: CheckpointFolder
) -> None:
    """Each window is published with each event: the snapshots of the new epoch replace those before."""
    write_identity(checkpoint)
    activate(checkpoint, "generation-1", 9, 5)
    write_watermark(checkpoint.below("generation-1"), datetime.now(UTC))
    rebuild.roll_back(rebuild.former(), 20)
    assert stored_windows(checkpoint) == UnpublishedWindows()


def test_no_build_from_before_a_rollback_is_continued_or_activated(
    closing: Rebuild, checkpoint: CheckpointFolder, broker: EmbeddedBroker, topics_prefix: str
) -> None:
    """It was built for a generation that had closed later windows, and lacks those that the former one has open."""
    application, now = hourly.application(topics_prefix, Emit.CLOSE), datetime.now(UTC)
    settings = JobSettings(kafka=broker.bootstrap, application="")
    mine = identity(application, identify(settings, application), PARTITIONS)
    newer, begun = checkpoint.below("generation-1"), checkpoint.below("generation-2")
    write_watermark(checkpoint, now - timedelta(days=1))
    write_identity(checkpoint)
    activate(checkpoint, "generation-1", 9, 5)
    store_missing(newer, milliseconds(now - timedelta(hours=12)))
    write_watermark(newer, now)
    write(begun, mine, 15)
    store_missing(begun, milliseconds(now))
    assert closing.plan(20).generation == "generation-2"
    closing.roll_back(closing.former(), 20)
    assert closing.plan(30).generation == "generation-30"
    with pytest.raises(ActivationConflictError):
        closing.activate("generation-2", 30)
