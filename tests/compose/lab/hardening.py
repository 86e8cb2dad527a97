"""What the engine shows of an image and of its containers: labels, user, file system, rights."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.compose.lab.errors import StackError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.compose.lab.commands import Commands
    from tests.compose.lab.stack import Stack

LABELS = "org.opencontainers.image."
USER = "10001:10001"
WRITE = 'test "$(id -u)" != 0 && ! touch /opt/mark 2>/dev/null && ! touch "$0" 2>/dev/null && touch /tmp/mark'
"""Succeeds for a user other than root that can write to /tmp, and neither to /opt nor to a file of the code."""


def require_labels(commands: Commands, image: str, expected: Mapping[str, str]) -> None:
    """An image has these labels, and does not run as root. Raises StackError."""
    (found,) = json.loads(commands.run("docker", "image", "inspect", image))
    labels = {name: (found["Config"]["Labels"] or {}).get(f"{LABELS}{name}") for name in expected}
    if labels != expected or found["Config"]["User"] != USER:
        raise StackError(f"{image} has the labels {labels}, and runs as {found['Config']['User']!r}")


def require_hardened(stack: Stack, services: Iterable[str]) -> None:
    """The containers of these services cannot write to their images, are not root, and have no capabilities."""
    for service in services:
        container = stack.container(service)
        limits = container["HostConfig"]
        if not limits["ReadonlyRootfs"] or limits["CapDrop"] != ["ALL"] or container["Config"]["User"] != USER:
            raise StackError(f"{service} has more rights than compose.yaml gives it: {limits}")
        stack.compose("exec", "-T", service, "sh", "-c", WRITE, "/opt/stateloop/contracts/__init__.py")
