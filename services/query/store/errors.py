"""Errors of a store. Everything that a store contains can be read from its topic again."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from contracts.errors import PermanentError, RetryableError
from services.query.errors import QueryServiceError

if TYPE_CHECKING:
    from pathlib import Path


DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
LOW_SPACE = 4 << 20
"""Bytes: with less free space than this a failed write is reported as a full disk, whatever the system reports."""


class StoreError(QueryServiceError):
    """The base of a store's errors."""


class FolderInUseError(StoreError, PermanentError):
    """Another process has the store open."""

    def __init__(self, folder: Path, pid: str) -> None:
        super().__init__(
            f"{folder} is in use by process {pid}: give each instance a folder of its own, or stop that process"
        )
        self.folder = folder


class ForeignFolderError(StoreError, PermanentError):
    """The folder contains files that are not of a store; nothing is overwritten."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} is not empty, and contains no store: empty it, or name another folder")
        self.folder = folder


class StoreFolderError(StoreError, PermanentError):
    """The folder cannot be created, read or written."""

    def __init__(self, folder: Path, error: OSError) -> None:
        detail = error.strerror or str(error)
        remedy = "make room on its disk" if error.errno in DISK_FULL else "make it writable for this user"
        super().__init__(
            f"{folder} cannot be used ({detail}): {remedy} and start the service again, or name another folder by "
            "STATELOOP_QUERY_DATA"
        )
        self.folder = folder


class StoreDamagedError(StoreError, PermanentError):
    """The database file cannot be opened."""

    def __init__(self, folder: Path, detail: str) -> None:
        super().__init__(
            f"{folder} cannot be opened ({detail}): delete it, all its content is read from the topic again"
        )
        self.folder = folder


class StoreWriteError(StoreError, RetryableError):
    """A batch was not written. The disk had `free` bytes of the `need`ed ones."""

    def __init__(self, folder: Path, detail: str, free: int, need: int = LOW_SPACE) -> None:
        cause = f"({detail}; {free / 1e6:,.0f} MB are free)"
        again = "and start the service again: it goes on from its store"
        super().__init__(
            f"The disk of {folder} is full {cause}: make room {again}"
            if free < need
            else f"{folder} could not be written {cause}: the system's log has the cause. Repair the disk {again}. Or "
            "name a folder on another disk by STATELOOP_QUERY_DATA: all is read from the topics again then"
        )
        self.folder = folder


class StoreClosedError(StoreError, RetryableError):
    """The store is closed, because the service stops."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} was closed: start the service again, it goes on from its store")
        self.folder = folder


class NoSilenceError(StoreError, PermanentError):
    """The state has no index of event times."""

    def __init__(self, state: str) -> None:
        super().__init__(f"{state} has no index of event times: declare QueryOptions(silence=True)")


class NotIndexedError(StoreError, PermanentError):
    """The state is filtered by a field that has no index."""

    def __init__(self, state: str, path: str, indexes: tuple[str, ...]) -> None:
        known = f"one of {', '.join(indexes)}" if indexes else "none, for none is declared"
        super().__init__(
            f"{state} cannot be filtered by {path!r}: take {known} (an index is declared by QueryOptions(indexes=…))"
        )
        self.path = path
