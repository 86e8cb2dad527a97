"""What can be the matter with a store. What it holds can always be read from the topic again."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from contracts.errors import StateloopError

if TYPE_CHECKING:
    from pathlib import Path


FULL = (errno.ENOSPC, errno.EDQUOT)
LITTLE = 4 << 20
"""Bytes: with less of them free, a write that fails does so for want of room, whatever the system calls it."""


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

    def __init__(self, folder: Path, error: OSError) -> None:
        detail = error.strerror or str(error)
        do = "make room on its disk" if error.errno in FULL else "make it writable for this user"
        super().__init__(
            f"{folder} cannot be used ({detail}): {do} and start the service again, or name another folder by "
            "STATELOOP_QUERY_DATA"
        )
        self.folder = folder


class Damaged(StoreError):
    """The file cannot be opened."""

    def __init__(self, folder: Path, detail: str) -> None:
        super().__init__(f"{folder} cannot be opened ({detail}): delete it, all in it is read from the topic again")
        self.folder = folder


class NotWritten(StoreError):
    """A batch could not be written, and none of it was. `free` is what the disk had then, of `need`, in bytes."""

    def __init__(self, folder: Path, detail: str, free: int, need: int = LITTLE) -> None:
        told = f"({detail}; {free / 1e6:,.0f} MB are free)"
        again = "and start the service again: it goes on where it was"
        super().__init__(
            f"The disk of {folder} is full {told}: make room {again}"
            if free < need
            else f"{folder} could not be written {told}: the system's log says what its disk has. Mend it {again}. Or "
            "name a folder on another disk by STATELOOP_QUERY_DATA: all is read from the topics again then"
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
            f"{state} cannot be filtered by {path!r}: take {known} (an index is declared by QueryOptions(indexes=…))"
        )
        self.path = path
