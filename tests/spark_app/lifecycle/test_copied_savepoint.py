"""Savepoints that other programs have copied, on folders in memory."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, cast

import pytest

from spark_app.checkpoint.identity import identity, write
from spark_app.lifecycle.errors import UnreadableSavepointError
from spark_app.lifecycle.savepoint import create, restore
from spark_app.topics.identity import TopicIdentity
from tests import everything
from tests.simulation.savepoints import MemoryFolder

MINE = identity(everything.app, [TopicIdentity("events", "id", 1)], 2)


def local_savepoint() -> Any:
    """Return a savepoint of a checkpoint on a local file system, where Hadoop writes checksums beside each file."""
    checkpoint, target = cast("Any", MemoryFolder("local")), cast("Any", MemoryFolder("the savepoint"))
    write(checkpoint, MINE, 7)
    for path in ("metadata", "offsets/0", "commits/0", "state/0/0/1_a.changelog"):
        folder, slash, name = path.rpartition("/")
        checkpoint.create(path, "v1\n{}\n-")
        checkpoint.create(f"{folder}{slash}.{name}.crc", "crc")
    made = create(checkpoint, target, "everything")
    assert (made.files, len(target.files())) == (4, 9)
    return target


@pytest.mark.parametrize("lost", ["", "metadata", "state/0/0/1_a.changelog"])
@pytest.mark.parametrize("has_checksums", [True, False])
def test_a_savepoint_is_complete_by_its_data(lost: str, has_checksums: bool) -> None:  # noqa: FBT001  # a parameter
    """Hadoop's tools copy no checksums from a local file system."""
    savepoint, source, checkpoint = local_savepoint(), cast("Any", MemoryFolder("copy")), MemoryFolder("checkpoint")
    for path in savepoint.files():
        if path != lost and (has_checksums or not path.endswith(".crc")):
            savepoint.copy(path, source)
    expected = pytest.raises(UnreadableSavepointError, match="3 files, and was made with") if lost else nullcontext()
    with expected:
        restore(source, cast("Any", checkpoint), MINE, {}, 8, lambda: nullcontext(lambda: None))
    assert ("stateloop.json" in checkpoint.names()) == (not lost)
