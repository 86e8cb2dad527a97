"""Reasons why the stack could not be tested, and its defects. Each message has the remedy or the place to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class LabError(Exception):
    """The base of all that ends the test."""


class NoEngineError(LabError):
    """No Docker engine runs here and none of its own can be had. `reason` is why."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"no Docker engine can be had: {reason}. Start one and run this again")
        self.reason = reason


class NotInstalledError(LabError):
    """Packages are missing that cannot be installed from here."""

    def __init__(self, packages: Iterable[str], why: str) -> None:
        super().__init__(f"{why}: as root, apt-get install -y --no-install-recommends {' '.join(packages)}")
        self.packages = tuple(packages)


class CommandFailedError(LabError):
    """A command ended with another code than 0, or not in time."""

    def __init__(self, command: Iterable[str], why: str, tail: str, log: Path) -> None:
        super().__init__(f"{' '.join(command)}\n{why}; all its output is in {log}, which ends with:\n{tail}")
        self.tail = tail


class StackError(LabError):
    """The stack does not do what is said of it."""
