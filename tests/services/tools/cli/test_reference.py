import subprocess
import sys
from pathlib import Path

import pytest

from services.runtime.command_line import ExitCode
from services.tools.cli.command_table import COMMANDS

CHECKOUT = Path(__file__).parents[4]
DOCUMENT = CHECKOUT / "docs" / "reference" / "commands.md"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a process of its own: other tests leave the lines of the table in its help."""
    path = tmp_path_factory.mktemp("reference") / "commands.md"
    subprocess.run([sys.executable, "-m", "services.tools.cli.reference", str(path)], cwd=CHECKOUT, check=True)
    return path.read_text(encoding="utf-8")


def test_the_committed_page_is_that_of_the_help(page: str) -> None:
    committed = DOCUMENT.read_text(encoding="utf-8")
    assert committed == page, "stale: run `python -m services.tools.cli.reference docs/reference/commands.md`"


def test_it_has_each_command_and_exit_code(page: str) -> None:
    assert all(f"Usage: stateloop {name}" in page for name in COMMANDS)
    assert "Usage: stateloop savepoint restore [OPTIONS] SAVEPOINT" in page
    assert all(f"\n| {code:d} | " in page for code in ExitCode)
