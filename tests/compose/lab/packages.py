"""Installs the Debian packages that the test needs and that are not there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.compose.lab.commands import has
from tests.compose.lab.errors import CommandFailedError, NotInstalledError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.compose.lab.commands import Commands

PROGRAMS = {
    "dockerd": "docker.io",
    "docker": "docker.io",
    "mmdebstrap": "mmdebstrap",
    "iptables": "iptables",
    "ip": "iproute2",
    "java": "openjdk-17-jre-headless",
}
"""The package of each program that the test runs."""


def install(commands: Commands, programs: Iterable[str]) -> tuple[str, ...]:
    """Install what brings these programs; gives the packages that were missing. Raises NotInstalledError."""
    missing = tuple(dict.fromkeys(PROGRAMS[program] for program in programs if not has(program)))
    if not missing:
        return ()
    if not has("apt-get"):
        raise NotInstalledError(missing, "this is no Debian or Ubuntu")
    if os.geteuid() != 0:
        raise NotInstalledError(missing, "packages are missing, and only root may install them")
    try:
        commands.run("apt-get", "update")
        commands.run("apt-get", "install", "-y", "--no-install-recommends", *missing)
    except CommandFailedError as error:
        raise NotInstalledError(missing, f"apt-get cannot install them: {error}") from error
    return missing
