"""The commands of docs/tutorials/write-an-application.md, from nothing to the first enriched snapshot."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from services.tools.cli.command_table import COMMANDS
from services.tools.new.project import PLACEHOLDER, TEMPLATE
from tests.deadline import DEADLINE_S
from tests.docs.shell import Shell, commands
from tests.packaging.built import ROOT, SOURCES, copy
from tests.services.tools.broker.embedded import free_ports

PAGE = (ROOT / "docs/tutorials/write-an-application.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
NAME = "cold_store"
WITHIN_S = 2.0 * DEADLINE_S
"""The limit from `make up` to the snapshot; a machine on which nothing else runs needs a minute."""


def test_the_page_shows_the_application_of_the_template() -> None:
    source = (TEMPLATE / PLACEHOLDER / "application.py").read_text(encoding="utf-8").strip()
    assert f"```python\n{source.replace(PLACEHOLDER, NAME)}\n```" in PAGE


def test_the_page_uses_the_targets_and_commands_that_there_are() -> None:
    used = [command for section in SECTIONS.values() for command in commands(section)]
    targets = {command.removeprefix("make ") for command in used if command.startswith("make ")}
    makefile = (TEMPLATE / "Makefile").read_text(encoding="utf-8")
    assert targets == {"test", "up"}
    assert targets <= set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    called = set(re.findall(r"bin/stateloop (\w+)", "\n".join(used)))
    assert called == {"new", "get", "doctor"}
    assert called <= set(COMMANDS)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A terminal of a machine that has the checkout in the home folder, and the jars already."""
    for source in SOURCES:
        copy(ROOT / source, tmp_path / "stateloop" / source)
    (tmp_path / "mine").mkdir()
    port = free_ports(10)
    own = {
        "HOME": str(tmp_path),
        "PIP_CACHE_DIR": str(Path.home() / ".cache" / "pip"),
        "STATELOOP_JARS": str(ROOT / ".stateloop" / "jars"),
        "STATELOOP_BROKER_PORT": str(port),
        "STATELOOP_REFERENCE_PORT": str(port + 2),
        "STATELOOP_HTTP_PORT": str(port + 3),
        "STATELOOP_URL": f"http://127.0.0.1:{port + 3}",
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("STATELOOP_", "PYTHON"))}
    return Shell(tmp_path / "mine", inherited | own)


@pytest.mark.full
def test_each_command_works_up_to_the_first_enriched_snapshot(shell: Shell, tmp_path: Path) -> None:
    first = [*commands(SECTIONS["Install the command"]), *commands(SECTIONS["Make a project"])]
    printed = [shell.succeed(command) for command in first]
    assert " passed" in printed[-1]
    up, get, doctor = commands(SECTIONS["Run it with make up"])
    with shell.in_background(f"{up} ARGS=--headless", tmp_path / "up.log") as loop:
        shell.repeat(get, "South hall", WITHIN_S)
        shell.succeed(doctor)
        assert loop.poll() is None
    assert "Stopped. The next start goes on from here." in (tmp_path / "up.log").read_text()
