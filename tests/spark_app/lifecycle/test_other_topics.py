"""A savepoint is restored onto other topics, or refused. tests/e2e/test_recovery.py does it on two brokers."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from spark_app.checkpoint.commit_log import parsed
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.identity import identity
from spark_app.lifecycle.errors import RecordsLostError, RestoreRefusedError
from spark_app.lifecycle.other_topics import former_ends, restore_onto
from spark_app.lifecycle.savepoint import Savepoint
from spark_app.lifecycle.start_offsets import FormerEnd, PartitionCopy, StartAt
from spark_app.topics.identity import TopicIdentity
from tests.everything import NOW
from tests.monitored import application as decoding
from tests.spark_app.lifecycle.test_start_offsets import APPLICATIONS, replayed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from contracts import Application

pytestmark = pytest.mark.spark

COUNTS = APPLICATIONS[True]
THERE = identity(COUNTS, [TopicIdentity("events", "id", 1)], 2)
HERE = identity(COUNTS, [TopicIdentity("events", "other", 1)], 2)
EVENTS = ("events", 0)
COPY = PartitionCopy(begin=1, end=9, first_ms=10, since=1, lacked=4, after=4)


class Restored:
    """A savepoint whose positions end at offset 40 of 1 partition, and a folder to restore it in."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.source, self.checkpoint = (
            CheckpointFolder(spark, str(folder / name)) for name in ("source", "checkpoint")
        )
        for batch in (5, 6, 7):
            self.source.below("offsets").create(str(batch), f'v1\n{{}}\n{{"events":{{"0":{33 + batch}}}}}')
            self.source.below("offsets").create(f".{batch}.crc", "crc")
        self.source.below("commits").create("7", "v1\n{}")
        content = Savepoint(
            format=1,
            application="counts",
            created=NOW,
            batch=7,
            epoch=7,
            identity=THERE,
            offsets={"events": {0: 40}},
            last_times={"events": {0: 50}},
            files=0,
            bytes=0,
        )
        self.source.write_new("savepoint.json", content.model_dump_json())

    def onto(self, copy: PartitionCopy = COPY, *, accepts_loss: bool = False, **changes: Any) -> dict[Any, int]:
        """Restore the savepoint; return the offsets at which the job begins."""
        arguments: dict[str, Any] = {"application": COUNTS, "mine": HERE, "start": StartAt.TIME} | changes
        arguments |= {"copies": {EVENTS: copy}, "least_epoch": 8, "leased": lambda: nullcontext(lambda: None)}
        _, made = restore_onto(self.source, self.checkpoint, accepts_loss=accepts_loss, **arguments)
        return made.offsets


@pytest.fixture
def restored(spark: SparkSession, tmp_path: Path) -> Restored:
    """Give a savepoint."""
    return Restored(spark, tmp_path)


def test_the_restored_job_begins_at_the_offsets_of_the_other_topics(restored: Restored) -> None:
    assert restored.onto() == {EVENTS: 1}
    for batch in (6, 7):
        assert parsed(restored.checkpoint.read(f"offsets/{batch}") or "") == {EVENTS: 1}
    assert sorted(restored.checkpoint.names("offsets")) == ["6", "7"], "no checksums, and none of the former topics"
    assert {"stateloop.json", "stateloop.republish"} <= set(restored.checkpoint.names())


def test_a_loss_is_refused_until_it_is_accepted(restored: Restored) -> None:
    late = COPY._replace(first_ms=60)
    with pytest.raises(RecordsLostError, match=r"begins 0.010 s after .*--accept-loss"):
        restored.onto(late)
    assert restored.checkpoint.names() == []
    assert restored.onto(late, accepts_loss=True) == {EVENTS: 1}


@pytest.mark.parametrize(
    ("application", "mine", "reason"),
    [
        (APPLICATIONS[False], HERE, "they would count twice"),
        (COUNTS, identity(COUNTS, [TopicIdentity("events", "other", 2)], 2), "with 2 partitions"),
        (COUNTS, identity(COUNTS, [TopicIdentity("events", "other", 1)], 4), "its state has 2"),
        (decoding(""), HERE, "it decodes raw topics"),
    ],
)
def test_it_is_refused_where_events_would_count_twice_or_the_state_does_not_fit(
    restored: Restored, application: Application, mine: Any, reason: str
) -> None:
    with pytest.raises(RestoreRefusedError, match=reason):
        restored.onto(application=application, mine=mine, accepts_loss=True)
    assert restored.checkpoint.names() == []


def test_a_checkpoint_that_exists_is_refused(restored: Restored) -> None:
    restored.checkpoint.create("stateloop.json", "{}")
    with pytest.raises(RestoreRefusedError, match="is not empty"):
        restored.onto()


def test_the_times_of_producers_are_no_order() -> None:
    savepoint = Savepoint(
        format=1,
        application="counts",
        created=NOW,
        batch=7,
        epoch=7,
        identity=THERE,
        offsets={"events": {0: 40, 1: 3}},
        last_times={"events": {0: 50, 1: 51}},
        next_times={"events": {0: 52}},
        files=0,
        bytes=0,
    )
    ends = former_ends(COUNTS, savepoint)
    assert ends == {EVENTS: FormerEnd(40, 50, 52), ("events", 1): FormerEnd(3, 51)}
    assert former_ends(replayed, savepoint)[EVENTS] == FormerEnd(40)
