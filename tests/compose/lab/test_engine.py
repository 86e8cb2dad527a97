from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.compose.lab import packages
from tests.compose.lab.commands import Commands
from tests.compose.lab.engine import Own, Present, find
from tests.compose.lab.errors import CommandFailedError, NoEngineError, NotInstalledError

if TYPE_CHECKING:
    from pathlib import Path


def program(folder: Path, name: str, script: str) -> None:
    """Put a program of this name first on the path, with what follows it in it."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    for name in packages.PROGRAMS:
        program(folder, name, "exit 1")
    return folder


def test_an_engine_that_answers_is_taken_as_it_is(programs: Path, tmp_path: Path) -> None:
    program(programs, "docker", "echo 28.0")
    found = find(tmp_path, tmp_path / "log")
    assert isinstance(found, Present)
    assert found.inside() == ()


def test_an_engine_that_cannot_start_is_a_failure_with_its_reason(programs: Path, tmp_path: Path) -> None:
    program(programs, "dockerd", "echo no cgroups here >&2; exit 7")
    program(programs, "unshare", 'while [ "$1" != dockerd ]; do shift; done; exec "$@"')
    found = find(tmp_path, tmp_path / "log")
    assert isinstance(found, Own)
    with pytest.raises(NoEngineError, match=r"ended with 7(.|\n)*no cgroups here"), found.building():
        pytest.fail("it does not build")


def test_its_daemon_is_stopped_also_after_an_error(programs: Path, tmp_path: Path) -> None:
    program(programs, "unshare", 'while [ "$1" != dockerd ]; do shift; done; exec "$@"')
    program(programs, "dockerd", f"echo $$ > {tmp_path}/docker.pid; touch {tmp_path}/up; exec sleep 600")
    program(programs, "docker", f"test -e {tmp_path}/up")
    own = Own(tmp_path, tmp_path / "log")
    pid = 0
    with suppress(ZeroDivisionError), own.running():
        pid = int(own.inside()[-1])
        os.kill(pid, 0)
        raise ZeroDivisionError
    assert pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_without_rights_to_install_the_packages_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packages, "has", lambda name: name == "apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(
        NotInstalledError, match=r"only root.*apt-get install -y --no-install-recommends docker\.io iptables"
    ):
        packages.install(Commands(tmp_path / "log", {}), ("dockerd", "docker", "iptables"))


def test_a_package_that_cannot_be_had_is_a_failure(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(programs, "apt-get", 'echo "E: no $1 today" >&2; exit 100')
    monkeypatch.setattr(packages, "has", lambda name: name == "apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(NotInstalledError, match="E: no update today"):
        packages.install(Commands(programs / "log", {}), ("dockerd",))


def test_the_error_of_a_failed_command_has_the_end_of_its_output(tmp_path: Path) -> None:
    commands = Commands(tmp_path / "log", {"WORD": "nonsense"})
    with pytest.raises(CommandFailedError, match="nonsense"):
        commands.run("sh", "-c", 'echo "$WORD" >&2; exit 3')
    with pytest.raises(CommandFailedError, match=r"took more than"):
        commands.run("sleep", "5", patience_s=0.1)
    assert commands.run("sh", "-c", 'echo "$WORD"') == "nonsense\n"


def test_the_log_has_the_commands(tmp_path: Path) -> None:
    Commands(tmp_path / "log", {}).run("echo", "said")
    assert "$ echo said\nsaid\n" in (tmp_path / "log").read_text()
