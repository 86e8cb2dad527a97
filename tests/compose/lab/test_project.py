from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from services.tools.new.project import write_project
from tests.compose.configured import configured
from tests.compose.lab.errors import StackError
from tests.compose.lab.project import NAME, OURS, REQUIREMENT, STAY, require_package

if TYPE_CHECKING:
    from pathlib import Path


def test_the_package_is_required_and_imported(tmp_path: Path) -> None:
    write_project(NAME, tmp_path)
    require_package(tmp_path / NAME)
    assert (tmp_path / NAME / "requirements.txt").read_text().splitlines()[-1] == REQUIREMENT
    source = (tmp_path / NAME / NAME / "application.py").read_text()
    compile(source, "application.py", "exec")
    assert "import isodate\n" in source
    with pytest.raises(StackError, match="has no"):
        require_package(tmp_path / NAME)


def test_the_lab_knows_each_container_of_a_project(tmp_path: Path) -> None:
    write_project(NAME, tmp_path)
    assert set(configured(root=tmp_path / NAME)) == {*STAY, "topics"}
    assert {*STAY} - {*OURS} == {"kafka"}
