"""Savepoints of a running job, what the restored job publishes, and exports of its state."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest
from typing_extensions import override

from contracts.records.fold import present
from contracts.wire import Snapshot, decode_snapshot
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.generations import activate
from spark_app.checkpoint.identity import identity, parse, write
from spark_app.checkpoint.lease import PREFIX
from spark_app.errors import LeaseLostError
from spark_app.lifecycle.errors import (
    EmptyCheckpointError,
    FilesDeletedError,
    RestoreRefusedError,
    UnreadableSavepointError,
)
from spark_app.lifecycle.savepoint import Savepoint, create, restore, savepoints
from spark_app.lifecycle.savepoint import parse as read_description
from spark_app.topics.identity import TopicIdentity
from tests import everything
from tests.everything import NOW
from tests.same import assert_same
from tests.simulation.savepoints import MemoryFolder
from tests.spark_app.batches import SHORT, committed
from tests.spark_app.folding import stored
from tests.spark_app.hosted import HostedJob, done
from tests.spark_app.running import Job, Topics, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
APPLICATION = "tests.everything:various"


@pytest.fixture
def quiet_job(spark: SparkSession, topics: Topics, tmp_path: Path) -> HostedJob:
    """Give the job of the application, not yet started."""
    environment = SHORT | {"EVERYTHING_PREFIX": topics.names.prefix}
    return HostedJob(spark, topics.kafka, tmp_path, APPLICATION, environment)


def newest(topics: Topics) -> dict[tuple[str, datetime], Snapshot]:
    """The snapshot of each window that a reader would show."""
    snapshots = [decode_snapshot(message.value() or b"") for message in topics.read(topics.names.snapshots, 1)]
    return {snapshot.window: snapshot for snapshot in sorted(snapshots, key=lambda snapshot: snapshot.order)}


def kill_while_it_copies(topics: Topics, checkpoint: Path, folder: Path) -> None:
    """Run `stateloop savepoint create` in a process, and kill it at a file that it cannot read to the end."""
    command = (sys.executable, "-m", "services.tools.cli", "savepoint", "create", str(folder))
    environment = {"EVERYTHING_PREFIX": topics.names.prefix}
    running = Job(topics.kafka, checkpoint.parent, APPLICATION, environment, command)
    pipe = checkpoint / "sources" / "pipe"
    os.mkfifo(pipe)
    running.start()
    try:
        until(lambda: running.ended() or list(folder.glob("*/metadata")), f"the first file, see {running.log}")
        assert not running.ended(), running.log.read_text(encoding="utf-8")[-3000:]
    finally:
        running.kill()
        pipe.unlink()


def test_a_restored_job_publishes_each_window_under_a_new_epoch(
    spark: SparkSession, topics: Topics, quiet_job: HostedJob, tmp_path: Path
) -> None:
    events, answers = everything.random_stream(1, devices=40, events=600, answers=100)
    early, late = events[:400], events[400:]
    job = quiet_job.start()
    topics.send(topics.names.events, early)
    topics.send(topics.names.feedback, answers)
    committed(job, len(early) + len(answers))
    stateloop = partial(done, spark, job.environment)
    made = stateloop("savepoint", "create", str(tmp_path / "savepoints")).split()[0]
    topics.send(topics.names.events, late)
    committed(job, len(events) + len(answers))
    job.stop()
    first = job.epoch()
    job.lose_checkpoint()
    assert stateloop("savepoint", "list", str(tmp_path / "savepoints")).startswith(made)
    stateloop("savepoint", "restore", made)
    before = sum(line["records"] for line in job.lines("batch"))
    job.start()
    try:
        until(lambda: job.lines("republishing"), "a republication")
        committed(job, before + len(late))
    finally:
        job.stop()
    assert job.epoch() > first
    fold, _ = stored(topics, len(events), len(answers), everything.various)
    published = newest(topics)
    assert published.keys() == fold.windows.keys()
    for window, merged in fold.windows.items():
        wanted = present(everything.various, window, merged, job.epoch())
        assert_same(published[window].model_dump(mode="json"), wanted.model_dump(mode="json"))
    kill_while_it_copies(topics, job.checkpoint, tmp_path / "killed")
    (unfinished,) = (tmp_path / "killed").iterdir()
    repeated = stateloop("savepoint", "create", str(tmp_path / "savepoints")).split()[0]
    job.lose_checkpoint()
    assert not stateloop("savepoint", "list", str(tmp_path / "killed"))
    assert "savepoint.json" in stateloop("savepoint", "restore", str(unfinished), code=1)
    stateloop("savepoint", "restore", repeated)
    check_export(stateloop, tmp_path / "export", published)


def check_export(stateloop: Callable[..., str], folder: Path, snapshots: dict[tuple[str, datetime], Snapshot]) -> None:
    """Compare the state in the checkpoint with what was published of it."""
    stateloop("state", "export", str(folder), "--format", "json")
    rows = [orjson.loads(line) for file in folder.glob("*/*.json") for line in file.read_bytes().splitlines()]
    exported = {(row["key"], datetime.fromisoformat(row["window_start"])): row for row in rows}
    assert exported.keys() == snapshots.keys()
    for window, snapshot in snapshots.items():
        row = exported[window]
        assert (row["version"], row["state"].keys()) == (snapshot.version, snapshot.state.keys())
    (device, start), first = next(iter(snapshots.items()))
    lines = stateloop("state", "get", device).splitlines()
    rows = [orjson.loads(line) for line in lines if line.startswith("{")]
    assert [row["version"] for row in rows if datetime.fromisoformat(row["window_start"]) == start] == [first.version]


def test_a_checkpoint_without_a_commit_gives_no_savepoint(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(EmptyCheckpointError):
        create(CheckpointFolder(spark, str(tmp_path / "none")), CheckpointFolder(spark, str(tmp_path / "copy")), "app")


class PurgedFolder(CheckpointFolder):
    """The folder of a job that commits a batch and deletes the files of the one before while they are copied."""

    commits = 1
    left = 0

    @override
    def copy(self, name: str, target: CheckpointFolder) -> int | None:
        if name.startswith("state/") and self.left:
            self.left -= 1
            self.commit()
        return super().copy(name, target)

    def commit(self) -> None:
        """Commit a batch, and delete the former ones."""
        batch = self.commits
        for log in ("offsets", "commits"):
            self.below(log).create(str(batch), "v1\n{}\n-")
            self.below(log).delete(str(batch - 1))
        for number in range(2):
            partition = self.below(f"state/0/{number}")
            partition.create(f"{batch + 1}_{number}.changelog", "some")
            partition.delete(f"{batch}_{number}.changelog")
        type(self).commits += 1


@pytest.fixture
def purged(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PurgedFolder:
    """Give the folder of a job with one committed batch."""
    monkeypatch.setattr(PurgedFolder, "commits", 1)
    folder = PurgedFolder(spark, str(tmp_path / "checkpoint"))
    write(folder, MINE, 5)
    folder.commit()
    return folder


def test_a_savepoint_has_all_files_of_one_commit_when_the_job_deletes_some_meanwhile(
    spark: SparkSession, purged: PurgedFolder, tmp_path: Path
) -> None:
    purged.left = 2
    copy = CheckpointFolder(spark, str(tmp_path / "copy"))
    assert create(purged, copy, "everything").batch == 3
    assert sorted(copy.files()) == [
        "commits/3",
        "offsets/3",
        "savepoint.json",
        "state/0/0/4_0.changelog",
        "state/0/1/4_1.changelog",
    ]


def test_no_savepoint_is_made_of_files_that_are_deleted_too_soon(
    spark: SparkSession, purged: PurgedFolder, tmp_path: Path
) -> None:
    purged.left = 1_000
    copy = CheckpointFolder(spark, str(tmp_path / "copy"))
    with pytest.raises(FilesDeletedError):
        create(purged, copy, "everything")
    assert copy.files() == []


TOPICS = [TopicIdentity("events", "id", 1)]
MINE = identity(everything.app, TOPICS, 2)


class LostLease:
    """A lease that is lost before a step."""

    def __init__(self, checkpoint: CheckpointFolder, lost_at: int) -> None:
        self._checkpoint = checkpoint
        self._left = lost_at
        self.files: list[str] = []
        """Those of the checkpoint when it was lost."""

    def leased(self) -> AbstractContextManager[Callable[[], object]]:
        return nullcontext(self._require)

    def _require(self) -> None:
        self._left -= 1
        if self._left == 0:
            self.files = sorted(self._checkpoint.files())
            raise LeaseLostError(self._checkpoint.path, "a job")


def leased() -> AbstractContextManager[Callable[[], object]]:
    """Give a lease that is never lost."""
    return nullcontext(lambda: None)


def description() -> Savepoint:
    """Return a savepoint without state, which ends at offset 5 of 1 partition."""
    return Savepoint(
        format=1,
        application="everything",
        created=NOW,
        batch=3,
        epoch=7,
        identity=MINE,
        offsets={"events": {0: 5}},
        files=0,
        bytes=0,
    )


def made(folder: CheckpointFolder, **changes: object) -> None:
    """Write such a savepoint."""
    folder.write_new("savepoint.json", description().model_copy(update=changes).model_dump_json())


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        ((6, 9), "1 records between are gone"),
        ((0, 4), "ends at 4"),
    ],
)
def test_a_savepoint_whose_records_are_gone_is_refused(
    spark: SparkSession, tmp_path: Path, held: tuple[int, int], reason: str
) -> None:
    source, checkpoint = (CheckpointFolder(spark, str(tmp_path / name)) for name in ("source", "checkpoint"))
    made(source)
    with pytest.raises(RestoreRefusedError, match=reason):
        restore(source, checkpoint, MINE, {("events", 0): held}, 8, leased)
    assert checkpoint.names() == []


def test_a_restore_writes_nothing_after_it_has_lost_the_lease(spark: SparkSession, tmp_path: Path) -> None:
    """Wherever it is lost. A folder that has nothing but a lease is empty."""
    source = CheckpointFolder(spark, str(tmp_path / "source"))
    made(source)
    for name in ("metadata", "first", "second"):
        source.create(name, "content")
    for lost in count(1):
        checkpoint = CheckpointFolder(spark, str(tmp_path / f"checkpoint-{lost}"))
        checkpoint.create(f"{PREFIX}1", "{}")
        lease = LostLease(checkpoint, lost)
        try:
            restore(source, checkpoint, MINE, {("events", 0): (5, 5)}, 8, lease.leased)
        except LeaseLostError:
            assert sorted(checkpoint.files()) == lease.files
            assert "stateloop.json" not in checkpoint.names()
        else:
            assert lost > len(source.files())
            assert "stateloop.json" in checkpoint.names()
            return


def test_a_savepoint_that_ends_where_the_topic_now_begins_is_restored(spark: SparkSession, tmp_path: Path) -> None:
    source, checkpoint = (CheckpointFolder(spark, str(tmp_path / name)) for name in ("source", "checkpoint"))
    made(source)
    restore(source, checkpoint, MINE, {("events", 0): (5, 5)}, 8, leased)
    assert "stateloop.json" in checkpoint.names()


def test_a_savepoint_is_refused_by_another_application_and_by_a_checkpoint_that_exists(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, checkpoint = (CheckpointFolder(spark, str(tmp_path / name)) for name in ("source", "checkpoint"))
    made(source)
    checkpoint.create("stateloop.json", "{}")
    with pytest.raises(RestoreRefusedError) as refused:
        restore(source, checkpoint, identity(everything.app, TOPICS, 4), {("events", 0): (0, 5)}, 8, leased)
    assert len(refused.value.reasons) == 2


def saved(**changes: object) -> Any:
    """Return a savepoint in memory, with 2 files of a byte."""
    source: Any = MemoryFolder("the savepoint")
    for name in ("metadata", "first"):
        source.overwrite(name, "1")
    made(source, **({"files": 2, "bytes": 2} | changes))
    return source


@pytest.mark.parametrize("changes", [{"files": 3}, {"bytes": 3}])
def test_a_savepoint_that_lacks_files_is_refused(changes: dict[str, int]) -> None:
    """As a copy of it to another site that was interrupted: its description was there first."""
    checkpoint: Any = MemoryFolder("the checkpoint")
    with pytest.raises(UnreadableSavepointError, match=r"2 bytes in 2 files, and was made with .* copy it again"):
        restore(saved(**changes), checkpoint, MINE, {("events", 0): (0, 5)}, 8, leased)
    assert checkpoint.names() == []


def test_a_savepoint_with_more_files_is_restored() -> None:
    """Some programs write a checksum beside each file that they copy."""
    source, checkpoint = saved(), cast("Any", MemoryFolder("the checkpoint"))
    source.overwrite(".metadata.crc", "crc")
    restore(source, checkpoint, MINE, {("events", 0): (0, 5)}, 8, leased)
    assert "stateloop.json" in checkpoint.names()


def test_no_job_starts_from_a_savepoint_that_is_deleted_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint: Any = MemoryFolder("the checkpoint")
    monkeypatch.setattr(MemoryFolder, "copy", lambda *_: None)
    with pytest.raises(UnreadableSavepointError, match=r"metadata was deleted .* remove the checkpoint"):
        restore(saved(), checkpoint, MINE, {("events", 0): (0, 5)}, 8, leased)
    assert checkpoint.names() == []


def test_a_restored_checkpoint_has_a_later_epoch_than_its_savepoint(spark: SparkSession, tmp_path: Path) -> None:
    """Also where the clock is behind the clock of the machine whose job wrote it."""
    source, checkpoint = (CheckpointFolder(spark, str(tmp_path / name)) for name in ("source", "checkpoint"))
    made(source, epoch=7_000)
    restore(source, checkpoint, MINE, {("events", 0): (0, 5)}, 6_000, leased)
    assert parse(checkpoint.read("stateloop.json") or "", checkpoint.path).epoch == 7_001


def test_an_unfinished_copy_is_no_savepoint(spark: SparkSession, tmp_path: Path) -> None:
    folder, unfinished = (CheckpointFolder(spark, str(tmp_path / name)) for name in (".", "unfinished"))
    unfinished.create("metadata", "{}")
    made(CheckpointFolder(spark, str(tmp_path / "second")), created=NOW + timedelta(hours=1))
    made(CheckpointFolder(spark, str(tmp_path / "first")))
    paths = [
        path for path, _ in savepoints(folder, partial(CheckpointFolder, spark), lambda error: pytest.fail(str(error)))
    ]
    assert [path.rpartition("/")[2] for path in paths] == ["first", "second"]
    with pytest.raises(UnreadableSavepointError):
        restore(unfinished, CheckpointFolder(spark, str(tmp_path / "checkpoint")), MINE, {}, 8, leased)


def test_fields_of_a_later_release_are_ignored_and_another_format_is_refused() -> None:
    content = description().model_dump(mode="json")
    later = orjson.dumps(content | {"checksum": "added later"}).decode()
    assert read_description(later, "folder") == description()
    with pytest.raises(UnreadableSavepointError, match=r"format 2, this release reads format 1\): restore it with"):
        read_description(orjson.dumps(content | {"format": 2, "offsets": "elsewhere"}).decode(), "folder")
    of_another_job = content | {"identity": content["identity"] | {"cluster": "not known"}}
    with pytest.raises(UnreadableSavepointError, match=r"identity\.cluster"):
        read_description(orjson.dumps(of_another_job).decode(), "folder")


def test_a_savepoint_has_the_epoch_under_which_its_job_publishes(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = CheckpointFolder(spark, str(tmp_path / "checkpoint"))
    generation = checkpoint.below("generation-1")
    write(generation, MINE, 5)
    for log in ("offsets", "commits"):
        generation.below(log).create("0", "v1\n{}\n-")
    activate(checkpoint, "generation-1", 9, 5)
    assert create(checkpoint, CheckpointFolder(spark, str(tmp_path / "copy")), "everything").epoch == 9
