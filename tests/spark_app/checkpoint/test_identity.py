"""A checkpoint serves the job that made it, and no other."""

import json
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.identity import CheckpointFile, CheckpointIdentity, claim, identity, parse, verify
from spark_app.errors import (
    ForeignCheckpointError,
    LostGenerationError,
    PartialCheckpointError,
    ReplacedCheckpointError,
    UnreadableCheckpointError,
)
from spark_app.topics.identity import TopicIdentity
from tests.everything import app, application

TOPICS = [TopicIdentity("events", "id1", 2), TopicIdentity("feedback", "id2", 2)]
MINE = identity(app, TOPICS, 2)
EPOCH = 1_767_268_800_000


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (identity(application(deduplicate=False), TOPICS, 2), "the deduplication of its state is None, the"),
        (identity(app, TOPICS, 4), "its state has 4 partitions, this job 2"),
        (identity(app, [TopicIdentity("events", "new", 2), TOPICS[1]], 2), "it read topic events as new with 2"),
        (identity(app, [TopicIdentity("events", "id1", 3), TOPICS[1]], 2), "it read topic events as id1 with 3"),
        (identity(app, TOPICS[:1], 2), "it read topic feedback as not there"),
    ],
)
def test_each_difference_is_reported(other: CheckpointIdentity, message: str) -> None:
    (difference,) = MINE.differences(other)
    assert message in difference


WRITTEN = CheckpointFile(format=1, epoch=EPOCH, identity=MINE)


def test_topics_with_other_ids_are_no_difference_once_they_are_accepted() -> None:
    other = identity(app, [TopicIdentity("events", "new1", 2), TopicIdentity("feedback", "new2", 2)], 2)
    assert len(other.differences(MINE)) == 2
    assert other.differences(MINE.on_topics(other.topics)) == []
    grown = identity(app, [TopicIdentity("events", "new1", 3), TopicIdentity("feedback", "new2", 3)], 2)
    assert len(grown.differences(MINE.on_topics(grown.topics))) == 2


def test_the_file_of_a_checkpoint_is_read_as_it_was_written() -> None:
    assert parse(WRITTEN.model_dump_json(), "folder") == WRITTEN


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": 2, "anything": "new"}, "it has format 2, this release reads format 1"),
        ({"format": None}, "format: Input should be a valid integer"),
        ({"format": True}, "format: Input should be a valid integer"),
        ({"epoch": "1"}, "epoch: Input should be a valid integer"),
        ({"epoch": 0}, "epoch: Input should be greater than 0"),
        ({"colour": "red"}, "colour: Extra inputs are not permitted"),
        ({"identity": None}, "identity: Input should be"),
        ({"identity": {"topics": {}}}, "identity.state_model: Field required"),
    ],
)
def test_a_file_of_another_release_is_refused_with_a_way_out(change: dict[str, object], problem: str) -> None:
    with pytest.raises(UnreadableCheckpointError, match="set STATELOOP_CHECKPOINT to a new folder") as refused:
        parse(json.dumps(WRITTEN.model_dump() | change), "folder")
    assert refused.value.problem.startswith(problem)


@given(st.text() | st.recursive(st.none() | st.integers(), st.lists).map(json.dumps))
def test_a_damaged_file_is_refused_with_a_way_out(content: str) -> None:
    with pytest.raises(UnreadableCheckpointError):
        parse(content, "folder")


@given(st.integers(0, 10_000))
def test_a_file_that_was_cut_is_refused(length: int) -> None:
    content = WRITTEN.model_dump_json()
    assume(length < len(content))
    with pytest.raises(UnreadableCheckpointError):
        parse(content[:length], "folder")


@pytest.mark.spark
def test_a_foreign_checkpoint_is_refused_and_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    folder = CheckpointFolder(spark, str(tmp_path / "checkpoint"))
    assert claim(folder, MINE, EPOCH) == EPOCH
    before = (tmp_path / "checkpoint" / "stateloop.json").read_text(encoding="utf-8")
    assert claim(folder, MINE, EPOCH + 1) == EPOCH
    verify(folder, MINE, EPOCH)
    foreign = identity(application(deduplicate=False), TOPICS, 2)
    with pytest.raises(ForeignCheckpointError, match="run `stateloop rebuild`"):
        claim(folder, foreign, EPOCH + 1)
    with pytest.raises(ForeignCheckpointError, match="the deduplication of its state is"):
        verify(folder, foreign, EPOCH)
    assert (tmp_path / "checkpoint" / "stateloop.json").read_text(encoding="utf-8") == before


@pytest.mark.spark
def test_a_checkpoint_that_is_replaced_while_the_job_runs_is_noticed(spark: SparkSession, tmp_path: Path) -> None:
    folder = CheckpointFolder(spark, str(tmp_path))
    with pytest.raises(ReplacedCheckpointError, match="is gone"):
        verify(folder, MINE, EPOCH)
    claim(folder, MINE, EPOCH + 1)
    with pytest.raises(ReplacedCheckpointError, match=f"has the epoch {EPOCH + 1}"):
        verify(folder, MINE, EPOCH)


@pytest.mark.spark
def test_a_checkpoint_that_an_operator_edited_is_read(spark: SparkSession, tmp_path: Path) -> None:
    folder = CheckpointFolder(spark, str(tmp_path))
    claim(folder, MINE, EPOCH)
    (tmp_path / "stateloop.json").write_text(
        CheckpointFile(format=1, epoch=EPOCH + 7, identity=MINE).model_dump_json(), encoding="utf-8"
    )
    assert claim(folder, MINE, EPOCH) == EPOCH + 7
    (tmp_path / "stateloop.json").write_bytes(b"\xff")
    with pytest.raises(UnreadableCheckpointError, match="Invalid JSON"):
        claim(folder, MINE, EPOCH)


@pytest.mark.spark
@pytest.mark.parametrize("left", ["offsets", "state", "sources"])
def test_the_remains_of_a_deleted_checkpoint_are_refused(spark: SparkSession, tmp_path: Path, left: str) -> None:
    (tmp_path / left).mkdir()
    folder = CheckpointFolder(spark, str(tmp_path))
    with pytest.raises(PartialCheckpointError, match=rf"no stateloop\.json, and has {left}, .*delete the folder"):
        claim(folder, MINE, EPOCH)
    assert folder.names() == [left]


@pytest.mark.spark
@pytest.mark.parametrize("left", ["state", "none"])
def test_no_state_begins_where_one_was_activated(spark: SparkSession, tmp_path: Path, left: str) -> None:
    (tmp_path / left).mkdir()
    folder = CheckpointFolder(spark, str(tmp_path))
    with pytest.raises(LostGenerationError, match=r"run `stateloop rebuild`"):
        claim(folder, MINE, EPOCH, is_activated=True)
    assert folder.names() == [left]
