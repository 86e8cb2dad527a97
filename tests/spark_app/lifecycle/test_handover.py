"""The stored end of the former job's snapshots: a crash within its write does not stop later switches."""

from __future__ import annotations

from typing import Any

import pytest

from spark_app.lifecycle.handover import FILE, StoredHandover, stored_handover
from tests.simulation.savepoints import MemoryFolder

STORED = StoredHandover(partitions=4, last_ms=1_767_225_600_000)
CONTENT = STORED.model_dump_json()


@pytest.mark.parametrize("length", range(len(CONTENT)))
def test_a_part_of_the_file_counts_as_none(length: int) -> None:
    folder: Any = MemoryFolder("a generation")
    folder.overwrite(FILE, CONTENT[:length])
    assert stored_handover(folder) is None


def test_the_whole_file_is_that_of_the_interrupted_activation() -> None:
    folder: Any = MemoryFolder("a generation")
    assert stored_handover(folder) is None
    folder.overwrite(FILE, CONTENT)
    assert stored_handover(folder) == STORED
