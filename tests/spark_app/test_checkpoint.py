"""A checkpoint serves the job that made it, and no other."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_app.checkpoint import Identity, claim, identity, state_model
from spark_app.errors import ForeignCheckpoint
from spark_app.topics import TopicIdentity
from tests.everything import app, application

TOPICS = [TopicIdentity("events", "id1", 2), TopicIdentity("feedback", "id2", 2)]
MINE = identity(app, TOPICS, 2)


def test_the_state_model_is_named_by_all_that_its_layout_depends_on() -> None:
    assert state_model(app) == state_model(application())
    assert state_model(app) != state_model(application(deduplicate=False))
    assert state_model(app).startswith("Everything-")


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (Identity("Else-1", MINE.topics, 2), "its state model is Else-1"),
        (Identity(MINE.state_model, MINE.topics, 4), "its state has 4 partitions, this job 2"),
        (identity(app, [TopicIdentity("events", "new", 2), TOPICS[1]], 2), "it read topic events as new with 2"),
        (identity(app, [TopicIdentity("events", "id1", 3), TOPICS[1]], 2), "it read topic events as id1 with 3"),
        (identity(app, TOPICS[:1], 2), "it read topic feedback as not there"),
    ],
)
def test_each_difference_is_told(other: Identity, says: str) -> None:
    (difference,) = MINE.differences(other)
    assert says in difference


@pytest.mark.spark
def test_a_foreign_checkpoint_is_refused_and_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    claim(spark, str(folder), MINE)
    before = (folder / "stateloop.json").read_text(encoding="utf-8")
    claim(spark, str(folder), MINE)
    with pytest.raises(ForeignCheckpoint, match="set STATELOOP_CHECKPOINT to a new folder"):
        claim(spark, str(folder), identity(application(deduplicate=False), TOPICS, 2))
    assert (folder / "stateloop.json").read_text(encoding="utf-8") == before


@pytest.mark.spark
def test_a_checkpoint_that_says_nothing_of_itself_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    with pytest.raises(ForeignCheckpoint, match=r"it has no stateloop\.json"):
        claim(spark, str(tmp_path), MINE)
