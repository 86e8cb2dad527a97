"""Finds a Java that runs Spark and Kafka, or the command that installs one."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from services.tools.broker.errors import JavaMissingError, JavaTooOldError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NEEDED = 17
ANSWER_S = 20

# In the order of the search: a Mac has brew, and a Linux system may have brew in addition to its own.
INSTALL_COMMANDS = {
    "apt-get": "apt-get install -y openjdk-17-jre-headless",
    "dnf": "dnf install -y java-21-openjdk-headless",
    "zypper": "zypper install -y java-21-openjdk-headless",
    "pacman": "pacman -S --noconfirm jre21-openjdk-headless",
    "apk": "apk add openjdk21-jre-headless",
    "brew": 'brew install openjdk@21 && export JAVA_HOME="$(brew --prefix openjdk@21)"',
}
ANY_SYSTEM = "your system's package manager (any OpenJDK 17 or 21 will do), then set JAVA_HOME to where it is"


def parse_version(output: str) -> int | None:
    """Return the major version that `java -version` printed (8 for 1.8), or None if it printed none."""
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(match[1]) if match else None


def install_command(has: Callable[[str], bool], os_release: Mapping[str, str], *, root: bool) -> str:
    """Return the command that installs Java on the system that `has` these programs and calls itself so."""
    manager = next((name for name in INSTALL_COMMANDS if has(name)), None)
    if manager is None:
        return ANY_SYSTEM
    command = INSTALL_COMMANDS[manager]
    if manager == "apt-get" and not _apt_has_17(os_release):
        command = command.replace("17", "21")
    return command if root or manager == "brew" else f"sudo {command}"


def find_java() -> Path:
    """Return the path of the Java of JAVA_HOME, or else on the PATH. Raises JavaMissingError, JavaTooOldError."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(Path(home) / "bin" / "java") if home else shutil.which("java")
    version = parse_version(_answer(java)) if java else None
    if java is None or version is None:
        raise JavaMissingError(_install_here())
    if version < NEEDED:
        raise JavaTooOldError(Path(java), version, NEEDED, _install_here())
    return Path(java)


def _apt_has_17(os_release: Mapping[str, str]) -> bool:
    """Debian 13 dropped 17, and Debian 12 does not have 21; every Ubuntu in support has 17."""
    version = os_release.get("VERSION_ID", "")
    return os_release.get("ID") != "debian" or (version.isdecimal() and int(version) < 13)  # noqa: PLR2004


def _answer(java: str) -> str:
    # On a Mac without Java, /usr/bin/java exists and fails: no version is no Java.
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stderr + done.stdout


def _install_here() -> str:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    return install_command(lambda name: shutil.which(name) is not None, release, root=os.geteuid() == 0)
