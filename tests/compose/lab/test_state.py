from __future__ import annotations

import pytest

from services.cli.__main__ import COMMANDS
from tests.compose.configured import ROOT, configured
from tests.compose.lab.state import DOCUMENTED


@pytest.mark.parametrize("command", DOCUMENTED)
def test_the_page_has_each_command_that_the_lab_runs(command: str) -> None:
    page = (ROOT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
    assert f"    docker compose {command}\n" in page


def test_each_command_of_the_page_is_run_in_an_image_that_can() -> None:
    services = configured()
    for command in DOCUMENTED:
        before, found, after = command.partition(" stateloop ")
        if found:
            image = services[before.split()[-1]]["image"]
            assert COMMANDS[after.split()[0]].needs_spark == image.startswith("stateloop-spark:"), command
