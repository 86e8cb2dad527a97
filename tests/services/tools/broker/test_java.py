from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from services.tools.broker.errors import JavaMissingError, JavaTooOldError
from services.tools.broker.java import ANY_SYSTEM, INSTALL_COMMANDS, find_java, install_command, parse_version

if TYPE_CHECKING:
    from pathlib import Path

DEBIAN_12 = {"ID": "debian", "VERSION_ID": "12"}
DEBIAN_13 = {"ID": "debian", "VERSION_ID": "13"}
UBUNTU = {"ID": "ubuntu", "VERSION_ID": "24.04"}


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "11.0.2" 2019-01-15', 11),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
        ("", None),
    ],
)
def test_version(output: str, version: int | None) -> None:
    assert parse_version(output) == version


@pytest.mark.parametrize("manager", INSTALL_COMMANDS)
def test_each_system_has_its_command(manager: str) -> None:
    assert install_command(manager.__eq__, {}, root=True).startswith(f"{manager} ")


@pytest.mark.parametrize(
    ("release", "java"),
    [
        (DEBIAN_12, "openjdk-17-"),
        (DEBIAN_13, "openjdk-21-"),
        (UBUNTU, "openjdk-17-"),
        ({"ID": "debian"}, "openjdk-21-"),
    ],
)
def test_apt_installs_a_java_that_this_release_has(release: dict[str, str], java: str) -> None:
    assert java in install_command("apt-get".__eq__, release, root=True)


def test_other_users_than_root_need_sudo_but_not_for_brew() -> None:
    assert install_command("dnf".__eq__, {}, root=False).startswith("sudo dnf ")
    assert install_command("brew".__eq__, {}, root=False).startswith("brew ")


def test_the_error_of_an_unknown_system_names_the_packages() -> None:
    assert install_command(lambda _: False, {}, root=False) == ANY_SYSTEM


def java_that_prints(folder: Path, text: str, code: int = 0) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{text}' >&2\nexit {code}\n")
    java.chmod(0o755)
    return java


def test_java_home_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = java_that_prints(tmp_path, 'openjdk version "21.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == java


def test_an_old_java_is_refused_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = java_that_prints(tmp_path, 'java version "1.8.0_402"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaTooOldError, match="17 or later") as refused:
        find_java()
    assert (refused.value.java, refused.value.found) == (java, 8)


def test_no_java_is_reported_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissingError, match="Java is missing: install it with: "):
        find_java()


def test_a_java_that_only_reports_that_there_is_none_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java_that_prints(tmp_path, "Unable to locate a Java Runtime.", code=1)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissingError):
        find_java()
