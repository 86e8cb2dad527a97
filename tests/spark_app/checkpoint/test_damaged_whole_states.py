"""A job whose whole states are damaged continues before them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from spark_app.checkpoint.commit_files import commit_files
from spark_app.checkpoint.damage import FAILURES, require_undamaged
from spark_app.errors import StateDamagedError
from tests.spark_app.checkpoint.test_commit_files import LocalFolder

if TYPE_CHECKING:
    from pathlib import Path


class Checkpoint(LocalFolder):
    """A checkpoint of one operator. The attempt of each batch is `a`."""

    def commit(self, *batches: int, partitions: int = 1, attempt: str = "a") -> None:
        """Commit batches, each with a changelog of every partition."""
        content = f"v2\n{json.dumps({'stateUniqueIds': {'0': [[attempt]] * partitions}})}"
        for batch in batches:
            self.write(f"offsets/{batch}")
            self.write(f"commits/{batch}", content.encode())
            for partition in range(partitions):
                self.write(f"state/0/{partition}/{batch + 1}_{attempt}.changelog")

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name."""
        return (self._path / name).exists()

    def delete(self, name: str) -> None:
        """Delete a file, if there is one."""
        (self._path / name).unlink(missing_ok=True)

    def continues_before(self) -> int | None:
        """Return the first batch that the next start forgets, after some failures; None if nothing is damaged."""
        this: Any = self
        try:
            require_undamaged(this, FAILURES)
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
