"""The errors of `stateloop new`, each with the remedy in its message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.errors import PermanentError, StateloopError

if TYPE_CHECKING:
    from pathlib import Path


class NewProjectError(StateloopError):
    """The base of the errors of this part."""


class InvalidNameError(NewProjectError, PermanentError):
    """No package can have this name."""

    def __init__(self, name: str, advice: str) -> None:
        super().__init__(f"{name!r} cannot be the name of the project: {advice}")
        self.name = name


class FolderInUseError(NewProjectError, PermanentError):
    """The folder has files already."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} exists, and is not an empty folder: write another name, or remove it")
        self.folder = folder


class TemplateMissingError(NewProjectError, PermanentError):
    """This installation has no template."""

    def __init__(self, template: Path) -> None:
        super().__init__(f"{template} is missing: run the command of an installed wheel or of a checkout")
        self.template = template


class UnwritableError(NewProjectError, PermanentError):
    """The folder cannot be written."""

    def __init__(self, folder: Path, cause: str) -> None:
        super().__init__(f"{folder} cannot be written ({cause}): run the command in a folder that you may write to")
        self.folder = folder
