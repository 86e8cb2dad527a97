from __future__ import annotations

import pytest

from tests.compose.configured import ROOT, configured
from tests.compose.lab.state import DOCUMENTED
from tests.services.tools.cli.test_command import OF_SPARK


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
            needs_spark = after.split()[0] in {words[0] for words in OF_SPARK}
            assert needs_spark == image.startswith("stateloop-spark:"), command
