"""What can be the matter with a store. What it holds can always be read from the topic again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.errors import StateloopError

if TYPE_CHECKING:
    from pathlib import Path


class StoreError(StateloopError):
    """The base."""


class FolderInUse(StoreError):
    """Another process has the store open."""

    def __init__(self, folder: Path, pid: str) -> None:
        super().__init__(
            f"{folder} is in use by process {pid}: give each instance a folder of its own, or stop that process"
        )
        self.folder = folder


class NotOurs(StoreError):
    """The folder holds files, and none says that it is a store: nothing is overwritten."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} is not empty, and holds no store: empty it, or name another folder")
        self.folder = folder


class FolderUnusable(StoreError):
    """The folder cannot be made, read or written."""

    def __init__(self, folder: Path, detail: str) -> None:
        super().__init__(f"{folder} cannot be used ({detail}): make it writable for this user, or name another folder")
        self.folder = folder


class Damaged(StoreError):
    """The file cannot be opened."""

    def __init__(self, folder: Path, detail: str) -> None:
        super().__init__(f"{folder} cannot be opened ({detail}): delete it, all in it is read from the topic again")
        self.folder = folder


class NotWritten(StoreError):
    """A batch could not be written, and none of it was."""

    def __init__(self, folder: Path, detail: str, free: int) -> None:
        super().__init__(
            f"{folder} could not be written ({detail}; {free / 1e6:,.0f} MB are free on that disk): make room and "
            "start the service again, it goes on where it was"
        )
        self.folder = folder


class StoreClosed(StoreError):
    """Nothing can be written any more: the service is about to end."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} was closed: start the service again, it goes on where it was")
        self.folder = folder


class NotIndexed(StoreError):
    """The state is filtered by a field that has no index."""

    def __init__(self, state: str, path: str, indexes: tuple[str, ...]) -> None:
        known = f"one of {', '.join(indexes)}" if indexes else "none, for none is declared"
        super().__init__(
            f"{state} cannot be filtered by {path!r}: take {known} (an index is declared by Asked(indexes=…))"
        )
        self.path = path
