from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.compose.lab.commands import Commands
from tests.compose.lab.errors import StackError
from tests.compose.lab.hardening import LABELS, USER, require_hardened, require_labels
from tests.compose.lab.stack import Stack

if TYPE_CHECKING:
    from pathlib import Path

CONFINED = {"HostConfig": {"ReadonlyRootfs": True, "CapDrop": ["ALL"]}, "Config": {"User": USER}}


@pytest.mark.parametrize(
    ("labels", "user", "is_right"),
    [
        ({f"{LABELS}title": "services"}, USER, True),
        ({f"{LABELS}title": "spark"}, USER, False),
        (None, USER, False),
        ({f"{LABELS}title": "services"}, "", False),
    ],
)
def test_labels_and_user_of_an_image_are_read_from_the_engine(
    tmp_path: Path, labels: dict[str, str] | None, user: str, *, is_right: bool
) -> None:
    (tmp_path / "inspected").write_text(json.dumps([{"Config": {"Labels": labels, "User": user}}]))
    (tmp_path / "docker").write_text(f"#!/bin/sh\ncat {tmp_path}/inspected\n")
    (tmp_path / "docker").chmod(0o755)
    commands = Commands(tmp_path / "log", {"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    if is_right:
        require_labels(commands, "image", {"title": "services"})
    else:
        with pytest.raises(StackError, match="image has the labels"):
            require_labels(commands, "image", {"title": "services"})


class ScriptedStack(Stack):
    """A stack of one container, which the engine describes as a test gives it. It records what runs in it."""

    def __init__(self, folder: Path, inspected: dict[str, Any]) -> None:
        super().__init__(Commands(folder / "log", {}), folder, ())
        self._inspected = inspected
        self.run: list[str] = []

    def containers(self, service: str) -> list[dict[str, Any]]:
        """Return the container."""
        return [self._inspected | {"Name": service}]

    def compose(self, *arguments: str) -> str:
        """Record the command."""
        self.run.append(" ".join(arguments))
        return ""


def test_a_confined_container_is_asked_to_write(tmp_path: Path) -> None:
    stack = ScriptedStack(tmp_path, CONFINED)
    require_hardened(stack, ["job"])
    (command,) = stack.run
    assert command.startswith("exec -T job sh -c ")
    assert command.endswith("/opt/stateloop/contracts/__init__.py")


@pytest.mark.parametrize(
    "loose",
    [
        {"HostConfig": {"ReadonlyRootfs": False, "CapDrop": ["ALL"]}},
        {"HostConfig": {"ReadonlyRootfs": True, "CapDrop": None}},
        {"Config": {"User": "root"}},
    ],
)
def test_a_container_with_more_rights_is_an_error(tmp_path: Path, loose: dict[str, Any]) -> None:
    with pytest.raises(StackError, match="job has more rights"):
        require_hardened(ScriptedStack(tmp_path, CONFINED | loose), ["job"])
