"""A job whose whole states are damaged continues before them, or names the command that builds the state anew."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from spark_app.checkpoint.commit_files import commit_files
from spark_app.checkpoint.damage import FAILURES, require_undamaged
from spark_app.errors import LeaseLostError, StateDamagedError, UnreadableStateError
from tests.spark_app.checkpoint.test_commit_files import LocalFolder

if TYPE_CHECKING:
    from pathlib import Path


DELETIONS = 6
"""The looks at the lease before two batches are forgotten with a whole state: one, and one for each deletion."""


class Checkpoint(LocalFolder):
    """A checkpoint of one operator, of this job. The attempt of each batch is `a`."""

    @staticmethod
    def require_lease() -> None:
        """Raise LeaseLostError if the checkpoint is another job's."""

    def commit(self, *batches: int, partitions: int = 1, attempt: str = "a") -> None:
        """Commit batches, each with a changelog of every partition."""
        content = f"v2\n{json.dumps({'stateUniqueIds': {'0': [[attempt]] * partitions}})}"
        for batch in batches:
            self.write(f"offsets/{batch}")
            self.write(f"commits/{batch}", content.encode())
            for partition in range(partitions):
                self.write(f"state/0/{partition}/{batch + 1}_{attempt}.changelog")

    def delete(self, name: str) -> None:
        """Delete a file, if there is one."""
        (self._path / name).unlink(missing_ok=True)

    def continues_before(self) -> int | None:
        """Return the first batch that the next start forgets, after some failures; None if nothing is damaged."""
        this: Any = self
        try:
            require_undamaged(this, FAILURES, self.require_lease)
        except StateDamagedError as error:
            return error.batch
        return None


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    """A checkpoint of six batches."""
    folder = Checkpoint(tmp_path)
    folder.commit(*range(6))
    folder.whole("state/0/0", 3, "a", "a.sst")
    folder.whole("state/0/0", 5, "a", "b.sst")
    return folder


@pytest.mark.parametrize("size", [0, 50])
@pytest.mark.parametrize("damaged", [{"5_a.zip"}, set()], ids=["with its checksum", "without a checksum"])
def test_the_zip_file_may_be_damaged(checkpoint: Checkpoint, size: int, damaged: set[str]) -> None:
    name = "state/0/0/5_a.zip"
    checkpoint.write(name, (checkpoint.read_bytes(name) or b"")[:size])
    checkpoint.damaged = damaged
    assert checkpoint.continues_before() == 4
    assert sorted(checkpoint.names("commits")) == ["0", "1", "2", "3"]
    assert checkpoint.continues_before() is None


@pytest.mark.parametrize("deletions", range(12))
def test_a_job_that_lost_its_lease_deletes_nothing_more(checkpoint: Checkpoint, deletions: int) -> None:
    """It may stand still while it reads the state, and another one has committed batches when it wakes."""
    left = deletions
    checkpoint.damaged = {"b.sst"}
    total = len(checkpoint.files("."))

    def require_lease() -> None:
        nonlocal left
        if not left:
            raise LeaseLostError(checkpoint.path, "another job")
        left -= 1

    checkpoint.require_lease = require_lease  # type: ignore[method-assign]
    with pytest.raises(LeaseLostError) if deletions < DELETIONS else nullcontext():
        assert checkpoint.continues_before() == 4
    assert total - len(checkpoint.files(".")) == max(0, min(deletions, DELETIONS) - 1)


def test_the_changelog_that_is_read_may_be_gone_beside_a_replaced_one(checkpoint: Checkpoint) -> None:
    checkpoint.commit(5, attempt="b")
    checkpoint.delete("state/0/0/6_b.changelog")
    assert checkpoint.continues_before() == 5


def test_the_oldest_batch_is_not_the_last_one_left(tmp_path: Path) -> None:
    """Spark does not start after a batch without the offsets of the one before it, as of a savepoint."""
    folder = Checkpoint(tmp_path)
    folder.commit(*range(9, 15))
    folder.whole("state/0/0", 10, "a", "a.sst")
    folder.damaged = {"/12_a.changelog"}
    assert folder.continues_before() == 11
    folder.damaged = {"/11_a.changelog"}
    with pytest.raises(UnreadableStateError):
        folder.continues_before()
    assert sorted(map(int, folder.names("offsets"))) == [9, 10]


def test_a_file_of_a_whole_state_may_be_gone(checkpoint: Checkpoint) -> None:
    checkpoint.delete("state/0/0/SSTs/b.sst")
    assert checkpoint.continues_before() == 4
    assert checkpoint.continues_before() is None


def test_the_whole_states_of_forgotten_batches_are_deleted(checkpoint: Checkpoint) -> None:
    """Spark deletes no old files of a partition as long as one of its zip files is damaged."""
    for name in (".5_a.zip.crc", "5_a.zip.crc", ".5_a.zip.crc.crc"):
        checkpoint.write(f"state/0/0/{name}")
    checkpoint.whole("state/0/0", 6, "b", "c.sst")
    checkpoint.damaged = {"5_a.zip"}
    assert checkpoint.continues_before() == 4
    assert sorted(name for name in checkpoint.names("state/0/0") if ".zip" in name) == ["3_a.zip"]


@pytest.mark.parametrize("damaged", ["5_a.zip", "b.sst", "5_a.changelog"])
def test_a_whole_state_of_an_attempt_that_was_replaced_is_not_read(checkpoint: Checkpoint, damaged: str) -> None:
    checkpoint.commit(4, attempt="b")
    checkpoint.whole("state/0/0", 5, "b", "c.sst")
    checkpoint.write("state/0/0/5_a.zip", b"cut")
    checkpoint.damaged = {damaged}
    assert checkpoint.continues_before() is None
    folder: Any = checkpoint
    paths = {path for path in commit_files(folder, 5) if path.startswith("state/")}
    assert {"state/0/0/5_b.zip", "state/0/0/SSTs/c.sst"} <= paths
    assert not {"state/0/0/5_a.zip", "state/0/0/SSTs/b.sst"} & paths


@pytest.mark.parametrize(
    ("oldest", "first"),
    [pytest.param("x.sst", 106, id="intact"), pytest.param("a.sst", None, id="damaged as well")],
)
def test_the_oldest_whole_state_is_of_a_batch_whose_commit_is_deleted(
    tmp_path: Path, oldest: str, first: int | None
) -> None:
    """Spark has the last hundred commits, and the last whole state before."""
    folder = Checkpoint(tmp_path)
    folder.commit(*range(95, 201))
    for batch in range(95, 100):
        folder.delete(f"commits/{batch}")
        folder.delete(f"offsets/{batch}")
    folder.whole("state/0/0", 95, "a", oldest)
    for version in range(107, 202, 12):
        folder.whole("state/0/0", version, "a", "a.sst")
    folder.damaged = {"a.sst"}
    if first is not None:
        assert folder.continues_before() == first
        assert folder.continues_before() is None
        return
    with pytest.raises(UnreadableStateError, match=r"cannot be read.* Run `stateloop rebuild`, or restore a savepoint"):
        folder.continues_before()
    assert len(folder.names("commits")) == len(folder.names("offsets")) == 101


def test_a_partition_without_an_older_whole_state_is_not_read_from_nothing(tmp_path: Path) -> None:
    """A savepoint has the last whole state of each partition, and the commits since the oldest one."""
    folder = Checkpoint(tmp_path)
    folder.commit(*range(2, 9), partitions=2)
    for version in range(3, 7):
        folder.delete(f"state/0/1/{version}_a.changelog")
    folder.whole("state/0/0", 3, "a", "a.sst")
    folder.whole("state/0/1", 7, "a", "b.sst")
    folder.damaged = {"1/7_a.changelog"}
    assert folder.continues_before() is None, "the whole state has its changes"
    folder.damaged = {"b.sst"}
    with pytest.raises(UnreadableStateError):
        folder.continues_before()
    folder.damaged = {"8_a.changelog"}
    assert folder.continues_before() == 7
