"""The settings of the session that are computed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from spark_app.session import batches_per_snapshot, java_options

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("seconds", "batches"), [(5, 12), (15, 4), (60, 1), (300, 1)])
def test_the_state_is_laid_down_whole_once_a_minute_or_with_each_batch(seconds: int, batches: int) -> None:
    assert batches_per_snapshot(timedelta(seconds=seconds)) == batches


def test_the_first_job_makes_the_archive_of_classes_and_the_next_one_uses_it(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    assert java_options("-Xss4m", None) == "-Xss4m"
    assert f"-Xss4m -XX:ArchiveClassesAtExit={archive}" in java_options("-Xss4m", archive)
    archive.touch()
    assert f"-Xss4m -XX:SharedArchiveFile={archive}" in java_options("-Xss4m", archive)
