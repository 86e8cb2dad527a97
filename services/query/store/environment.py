"""The LMDB environment of one state: its databases, in one file, opened once."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import lmdb

from services.query.store.buckets import SLOTS
from services.query.store.errors import LOW_SPACE, StoreClosedError, StoreDamagedError, StoreWriteError
from services.query.store.store_metadata import StoreMetadata

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lmdb import Environment, Transaction, _Database

MIN_MAP_SIZE = 1 << 40
"""The file may grow to this size in bytes, or to that of its disk if that is more: it only reserves addresses."""
FILE = "data.mdb"
FACTS = b"facts"
"""The database of `StoreMetadata`."""
READERS = 16
PAGES_PER_UPDATE = 16
"""The maximum number of pages of one database that one update rewrites: leaves, splits, and the pages above them."""
FREE_LIST_BYTES = 16
"""Bytes per page of the file for the list of free pages, which a dropped bucket makes long, and its copy."""
RESERVE = LOW_SPACE
"""Bytes for the pages that every transaction rewrites, and for what other processes write meanwhile."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The databases of one bucket; buckets use the slots in turn."""

    entries: _Database
    """By name: see `KeyNames`."""
    history: _Database
    """Earlier entries, by name and version."""
    index: _Database
    """Lists of keys, as sorted duplicates of the heads of `TermIndex`."""

    @property
    def databases(self) -> tuple[_Database, ...]:
        """All three databases."""
        return self.entries, self.history, self.index


def is_cut_off(folder: Path) -> bool:
    """Return whether the file ends before its last page: the system kills a process that reads behind the end."""
    try:
        with lmdb.open(str(folder), readonly=True, lock=False, create=False) as environment:
            return _size(environment) > (folder / FILE).stat().st_size
    except lmdb.Error:
        return False  # there is no file, or one that cannot be opened


def read_watermarks(folder: Path) -> tuple[int, int]:
    """Return both watermarks of a file that is not open, and not cut off; zeros if it has none."""
    try:
        with lmdb.open(str(folder), readonly=True, lock=False, create=False, max_dbs=1) as environment:
            metadata = StoreMetadata(environment.open_db(FACTS, create=False))
            with environment.begin() as transaction:
                return metadata.watermark(transaction), metadata.complete_watermark(transaction)
    except lmdb.Error:
        return 0, 0


def _size(environment: Environment) -> int:
    return environment.stat()["psize"] * (environment.info()["last_pgno"] + 1)


class Databases:
    """The environment of a store, and its databases. Raises StoreDamagedError."""

    def __init__(self, folder: Path, indexes: int, *, history: bool) -> None:
        """Open the environment. Each index adds the writes of one more database to an update.

        With `history` an update also writes the earlier entry. Its size is unknown beforehand, so a memory map is not
        used for writing.
        """
        self._folder = folder
        self._in_use = threading.Lock()
        self._closed = False
        self._file = folder / FILE
        rebuilds = not self._file.exists() or self._file.stat().st_size >= MIN_MAP_SIZE
        self._open(mapped=rebuilds and not history)
        self._page: int = self.environment.stat()["psize"]  # that of the machine, which need not be 4096
        self._each = self._page * PAGES_PER_UPDATE * (1 + indexes)

    def _open(self, *, mapped: bool) -> None:
        """Open the environment; if `mapped`, writes go to a memory map, and the file is as large as the map.

        A rebuild rewrites nearly one page per key, and would spend a third of its time on system calls. After the
        rebuild a map would slow readers down: the system interrupts them for each page that it writes to the disk.
        Raises StoreWriteError, StoreDamagedError.
        """
        disk, self.mapped = os.statvfs(self._folder), mapped
        if mapped and (free := self.free_bytes()) < RESERVE:
            raise StoreWriteError(self._folder, "its databases may have to be created", free, RESERVE)
        try:
            self.environment: Environment = lmdb.open(
                str(self._folder),
                map_size=max(MIN_MAP_SIZE, disk.f_frsize * disk.f_blocks),
                max_dbs=1 + 3 * SLOTS,
                max_readers=READERS,
                sync=False,  # the folder records whether the machine went down
                metasync=False,
                readahead=False,  # keys are read in random order
                meminit=False,
                writemap=mapped,
            )
            self.environment.reader_check()
            self.facts = self.environment.open_db(FACTS)
            self.slots = tuple(self._slot(number) for number in range(SLOTS))
        except lmdb.Error as error:
            if (free := self.free_bytes()) < LOW_SPACE:
                raise StoreWriteError(self._folder, str(error), free) from error
            raise StoreDamagedError(self._folder, str(error)) from error

    @contextmanager
    def writing(self) -> Iterator[Transaction[bytes]]:
        """Yield a transaction that is written as a whole or not at all. Raises StoreWriteError, StoreClosedError."""
        try:
            with self._in_use:
                if self._closed:
                    raise StoreClosedError(self._folder)
                self.require_space()
                with self.environment.begin(write=True) as transaction:
                    yield transaction
                self._extend()
        except lmdb.Error as error:
            raise StoreWriteError(self._folder, str(error), self.free_bytes()) from error

    def require_space(self, updates: int = 0, size: int = 0) -> None:
        """Check that the disk has room for these updates of these bytes, and the commit. Raises StoreWriteError.

        Only for a map, where the system kills the process when a page has no room; otherwise LMDB reports it.
        """
        if not self.mapped:
            return
        need = RESERVE + FREE_LIST_BYTES * self._pages() + updates * self._each + size
        free = self.free_bytes()
        if free < need:
            raise StoreWriteError(self._folder, f"{need / 1e6:,.0f} MB may be needed for the next writes", free, need)

    def finish_bulk_load(self) -> bool:
        """Reopen a mapped environment without the map; return whether it did. Requires that no read is in progress."""
        with self._in_use:
            if self._closed or not self.mapped:
                return False
            used = self._page * self._pages()
            self.environment.close()
            os.truncate(self._file, used)
            self._open(mapped=False)
        return True

    def free_bytes(self) -> int:
        """Return the free space of the disk."""
        disk = os.statvfs(self._folder)
        return disk.f_frsize * disk.f_bavail

    def close(self) -> None:
        """Sync to disk and close, after the writer has finished: LMDB crashes if it is closed during a write."""
        with self._in_use:
            self._closed = True
            self.environment.sync(True)  # noqa: FBT003 (takes no keyword)
            self.environment.close()

    def _extend(self) -> None:
        """Let the file have its last page, which LMDB does not write if it is unused: else the file seems cut off."""
        size = _size(self.environment)
        if self._file.stat().st_size < size:
            os.truncate(self._file, size)

    def _pages(self) -> int:
        return self.environment.info()["last_pgno"] + 1

    def _slot(self, number: int) -> Slot:
        entries, history = (self.environment.open_db(f"{kind}{number}".encode()) for kind in ("entries", "history"))
        return Slot(entries, history, self.environment.open_db(f"index{number}".encode(), dupsort=True))
