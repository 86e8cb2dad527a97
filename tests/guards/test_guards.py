"""The list of guards fits the present sources: `make guards` takes each out, and expects that a test fails."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.guards.guard import ROOT, Guard, guards

if TYPE_CHECKING:
    from pathlib import Path

GUARDS = guards()


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_the_source_has_the_text_of_a_guard_once(guard: Guard) -> None:
    assert guard.taken_out((ROOT / guard.file).read_text()) != (ROOT / guard.file).read_text()


def test_the_source_without_a_guard_runs(tmp_path: Path) -> None:
    for number, guard in enumerate(guard for guard in GUARDS if guard.file.endswith(".py")):
        (tmp_path / f"{number}.py").write_text(guard.taken_out((ROOT / guard.file).read_text()))
    ruff = shutil.which("ruff", path=str(ROOT / ".venv" / "bin")) or "ruff"
    command = [ruff, "check", "--isolated", "--select", "E9,F821,F823,TC004", str(tmp_path)]
    checked = subprocess.run(command, check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_the_tests_of_the_guards_exist() -> None:
    named = {test for guard in GUARDS for test in guard.tests}
    missing = [test for test in named if not _is_there(*test.partition("::")[::2])]
    assert missing == []


def _is_there(path: str, name: str) -> bool:
    function = name.rpartition("::")[2].partition("[")[0]
    if not (ROOT / path).exists():
        return False
    text = (ROOT / path).read_text()
    return not name or f"def {function}(" in text or f"\n{function} = " in text


def test_each_fault_is_a_sentence() -> None:
    assert [guard.name for guard in GUARDS if not guard.fault.endswith(".")] == []
