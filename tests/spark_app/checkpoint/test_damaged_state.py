"""A job whose changelogs are damaged reads the records of their batches again."""

from __future__ import annotations

import json
import zipfile
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from contracts.wire import decode_snapshot
from spark_app.checkpoint.damage import first_damaged_batch, forget_batches
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.errors import CheckpointUnreachableError, UnreadableStateError
from tests.everything import NOW, event_record
from tests.spark_app.batches import SHORT, committed
from tests.spark_app.running import Job, everything, until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark_app.running import Topics

LOGS = ("commits", "offsets")


@pytest.mark.spark
def test_the_last_batch_is_repeated(pair_topics: Topics, tmp_path: Path) -> None:
    job = Job(pair_topics.kafka, tmp_path, "tests.spark_app.pair:app", SHORT)
    send(pair_topics, "1", a=1.0)
    try:
        committed(job.start(), 1)
        send(pair_topics, "2", b=2.0)
        committed(job, 2)
        job.kill()
        for path in last_changelogs(job.checkpoint):
            flip(path)
        send(pair_topics, "3", a=3.0)
        until(lambda: job.start().wait() == 1, "a start that finds the damage")
        assert "a file of the state of batch" in job.lines("ended")[-1]["why"]
        job.start()
        until(lambda: job.ended() or published(pair_topics)[-1] == (3, {"a": 3.0, "b": 2.0}), "the third state")
        assert not job.ended(), job.log.read_text("utf-8")[-3000:]
        committed(job, 3)
    finally:
        if not job.ended():
            job.kill()
    assert sorted({version for version, _ in published(pair_topics)}) == [1, 2, 3]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("committed", "first", "left"),
    [
        pytest.param((2, 3, 4), 4, [2, 3], id="and the one that was begun"),
        pytest.param((3, 4), 3, [3, 4, 5], id="unless the one before is not known"),
        pytest.param((3, 4), 0, [3, 4, 5], id="and no state without the first records"),
        pytest.param((0, 1), 0, [], id="all of them"),
    ],
)
def test_batches_are_forgotten(
    spark: SparkSession, tmp_path: Path, committed: tuple[int, ...], first: int, left: list[int]
) -> None:
    for log, numbers in (("commits", committed), ("offsets", (*committed, committed[-1] + 1))):
        (tmp_path / log).mkdir()
        for number in numbers:
            (tmp_path / log / str(number)).touch()
            (tmp_path / log / f".{number}.crc").touch()
    is_refused = left[-1] > committed[-1] if left else False
    with pytest.raises(UnreadableStateError) if is_refused else nullcontext():
        forget_batches(CheckpointFolder(spark, str(tmp_path)), first)
    assert sorted(int(path.name) for path in (tmp_path / "offsets").glob("[0-9]")) == left
    assert sorted(int(path.name) for path in (tmp_path / "commits").glob("[0-9]")) == left[: len(committed)]
    assert len([*(tmp_path / "offsets").iterdir()]) == 2 * len(left)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("damaged", "first"),
    [
        pytest.param({"3_a"}, 2, id="of the committed attempt"),
        pytest.param({"2_b"}, None, id="of an attempt that was repeated"),
        pytest.param({"2_b", "4_a"}, 3, id="of both"),
        pytest.param(set(), None, id="none"),
    ],
)
def test_only_what_the_next_start_reads_is_damaged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: set[str], first: int | None
) -> None:
    commit_batches(tmp_path, 4)
    (tmp_path / "state/0/0/2_b.changelog").touch()
    names = {f"state/0/0/{name}.changelog" for name in damaged}
    monkeypatch.setattr(CheckpointFolder, "is_damaged", lambda _, name: name in names)
    assert first_damaged_batch(CheckpointFolder(spark, str(tmp_path)), with_whole_states=False) == first


@pytest.mark.spark
@pytest.mark.parametrize(
    ("damaged", "first"),
    [
        pytest.param({"5_a.zip"}, 4, id="a newest whole state"),
        pytest.param({"SSTs/c.sst"}, 4, id="a file of one"),
        pytest.param({"SSTs/b.sst"}, 2, id="a file that two whole states share"),
        pytest.param({"5_a.zip", "4_a.changelog"}, 3, id="and the changelog of a version before"),
        pytest.param({"SSTs/b.sst", "1_a.changelog"}, 0, id="and all that is before it"),
        pytest.param({"SSTs/d.sst", "2_a.zip"}, None, id="what the next start does not read"),
    ],
)
def test_the_next_start_continues_before_a_damaged_whole_state(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: set[str], first: int | None
) -> None:
    commit_batches(tmp_path, 5)
    for version, names in ((3, "ab"), (5, "bc")):
        files = {"sstFiles": [{"dfsSstFileName": f"{name}.sst"} for name in names]}
        with zipfile.ZipFile(tmp_path / f"state/0/0/{version}_a.zip", "w") as archive:
            archive.writestr("metadata", f"v1\n{json.dumps(files)}")
    for name in "abcd":
        (tmp_path / f"state/0/0/SSTs/{name}.sst").touch()
    paths = {f"state/0/0/{name}" for name in damaged}
    monkeypatch.setattr(CheckpointFolder, "is_damaged", lambda _, name: name in paths)
    folder = CheckpointFolder(spark, str(tmp_path))
    assert first_damaged_batch(folder, with_whole_states=True) == first
    assert first_damaged_batch(folder, with_whole_states=False) is None


@pytest.mark.parametrize("deleted", range(13))
def test_a_crash_between_leaves_a_batch_in_progress_at_most(deleted: int) -> None:
    logs = {log: [name for n in range(7 + (log == "offsets")) for name in (str(n), f".{n}.crc")] for log in LOGS}

    class Interrupted:
        left = deleted

        def names(self, log: str) -> list[str]:
            return [*logs[log]]

        def delete(self, path: str) -> None:
            if not self.left:
                raise CheckpointUnreachableError(path, "killed")
            self.left -= 1
            log, _, name = path.partition("/")
            if name in logs[log]:
                logs[log].remove(name)

    checkpoint: Any = Interrupted()
    with pytest.raises(CheckpointUnreachableError):
        forget_batches(checkpoint, 3)
    commits, offsets = ([int(name) for name in logs[log] if name.isdecimal()] for log in LOGS)
    assert len(offsets) - len(commits) in {0, 1}
    assert commits == [*range(len(commits))]
    assert offsets == [*range(len(offsets))]


def commit_batches(checkpoint: Path, batches: int) -> None:
    """Write the commits of batches whose state has one partition, each with a changelog of the attempt `a`."""
    (checkpoint / "commits").mkdir()
    (checkpoint / "state/0/0/SSTs").mkdir(parents=True)
    for batch in range(batches):
        commit = {"nextBatchWatermarkMs": 0, "stateUniqueIds": {"0": [["a"]]}}
        (checkpoint / "commits" / str(batch)).write_text(f"v2\n{json.dumps(commit)}")
        (checkpoint / f"state/0/0/{batch + 1}_a.changelog").touch()


def send(topics: Topics, number: str, **values: float) -> None:
    event: dict[str, Any] = {"device_id": "d", "event_id": number, "first_seen": NOW, "ts": NOW, **values}
    topics.send(topics.names.events, [event_record(event)])


def flip(path: Path) -> None:
    """Flip a bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def last_changelogs(checkpoint: Path) -> list[Path]:
    """Return the changelogs of the last committed batch."""
    batch = max(int(path.name) for path in checkpoint.glob("commits/*") if path.name.isdigit())
    found = [*checkpoint.glob(f"state/*/*/{batch + 1}_*.changelog")]
    assert found
    return found


def published(topics: Topics) -> list[tuple[int, dict[str, Any]]]:
    """Return the version and the state of each snapshot."""
    messages = everything(topics.kafka, topics.names.snapshots)
    found = [decode_snapshot(message.value() or b"") for message in messages]
    return [(snapshot.version, snapshot.state) for snapshot in found]
