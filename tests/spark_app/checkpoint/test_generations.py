"""The generations of a checkpoint, on a real file system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.generations import ROOT, activate, active, active_folder, previous, unfinished
from spark_app.errors import ActivationConflictError
from tests.simulation.savepoints import MemoryFolder

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FIRST, SECOND = "generation-1", "generation-2"


@pytest.fixture
def checkpoint(spark: SparkSession, tmp_path: Path) -> CheckpointFolder:
    """Give a checkpoint with two generations that were built below it."""
    folder = CheckpointFolder(spark, str(tmp_path))
    for name in (FIRST, SECOND):
        folder.below(name).create("stateloop.json", "{}")
    return folder


def test_a_checkpoint_that_was_never_rebuilt_is_its_own_generation(checkpoint: CheckpointFolder) -> None:
    assert active(checkpoint) is None
    assert active_folder(checkpoint).path == checkpoint.path
    assert previous(checkpoint) is None
    assert list(unfinished(checkpoint)) == [SECOND, FIRST]


def test_each_activation_has_a_greater_epoch(checkpoint: CheckpointFolder) -> None:
    first = activate(checkpoint, FIRST, 1_000, 5_000)
    assert (first.epoch, active_folder(checkpoint).path) == (5_001, checkpoint.below(FIRST).path)
    second = activate(checkpoint, SECOND, 9_000, first.epoch)
    assert (second.epoch, active(checkpoint)) == (9_000, second)
    assert list(unfinished(checkpoint)) == []


def test_the_way_back_leads_to_the_generation_before(checkpoint: CheckpointFolder) -> None:
    activate(checkpoint, FIRST, 1, 1)
    assert previous(checkpoint) == ROOT
    activate(checkpoint, SECOND, 2, 2)
    assert previous(checkpoint) == FIRST
    assert str(activate(checkpoint, FIRST, 3, 3)) == FIRST
    assert previous(checkpoint) == SECOND
    assert str(activate(checkpoint, ROOT, 4, 4)) == "the first one"
    activate(checkpoint, SECOND, 5, 5)
    assert previous(checkpoint) == ROOT


def test_of_two_activations_at_once_one_is_refused(
    checkpoint: CheckpointFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    activate(checkpoint, FIRST, 1, 1)
    monkeypatch.setattr("spark_app.checkpoint.generations.used_numbers", lambda _: [])
    with pytest.raises(ActivationConflictError):
        activate(checkpoint, SECOND, 2, 2)


def test_an_activation_that_was_killed_before_it_had_content_is_passed_over() -> None:
    """As on HDFS, where the name is there first."""
    folder: Any = MemoryFolder("the checkpoint")
    activate(folder, FIRST, 1, 1)
    folder.create("stateloop.active.2", "")
    assert str(active(folder)) == FIRST
    assert activate(folder, SECOND, 5, 2) == active(folder)
    assert previous(folder) == FIRST
