"""LMDB as the store uses it: the databases of one state, in one file, opened once."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import lmdb

from services.query.store.buckets import SLOTS
from services.query.store.errors import LITTLE, Damaged, NotWritten, StoreClosed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lmdb import Environment, Transaction, _Database

AT_LEAST = 1 << 40
"""What the file may grow to, in bytes, or to the size of its disk if that is more: only addresses are taken for it."""
READERS = 16
PAGES = 16
"""Of one database, made anew by one update at the most: leaves, what is split off, and the upper pages of each."""
LISTED = 16
"""Bytes for each page of the file: the list of those that are free, which a dropped bucket makes long, and its copy."""
SPARE = LITTLE
"""Bytes for what all updates make anew once, and for what others take of the disk meanwhile."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The databases of one bucket; the buckets take the slots in turn."""

    entries: _Database
    """By key."""
    history: _Database
    """Earlier entries, by key and version."""
    index: _Database
    """Keys, by index, mark and key."""

    @property
    def databases(self) -> tuple[_Database, ...]:
        """All three."""
        return self.entries, self.history, self.index


class Databases:
    """The environment of a store, and its databases. Raises Damaged."""

    def __init__(self, folder: Path, indexes: int, *, history: bool) -> None:
        """An update writes as much as a database of its own for each index. With `history` also what was there before.

        How much that is nobody knows beforehand, so it is not written in a map.
        """
        self._folder = folder
        self._in_use = threading.Lock()
        self._closed = False
        self._file = folder / "data.mdb"
        rebuilds = not self._file.exists() or self._file.stat().st_size >= AT_LEAST
        self._open(mapped=rebuilds and not history)
        self._page: int = self.environment.stat()["psize"]  # the machine's, which need not be 4096
        self._each = self._page * PAGES * (1 + indexes)

    def _open(self, *, mapped: bool) -> None:
        """Open it to be written `mapped`, in memory, which makes the file as large as its map.

        A rebuild makes nearly a page anew for each key, and would spend a third of its time on calls that write one.
        Later that would cost readers more: to write such pages to the disk, the system interrupts them for each.
        Raises NotWritten, Damaged.
        """
        disk, self.mapped = os.statvfs(self._folder), mapped
        if mapped and (free := self._free()) < SPARE:
            raise NotWritten(self._folder, "its databases may have to be made", free, SPARE)
        try:
            self.environment: Environment = lmdb.open(
                str(self._folder),
                map_size=max(AT_LEAST, disk.f_frsize * disk.f_blocks),
                max_dbs=1 + 3 * SLOTS,
                max_readers=READERS,
                sync=False,  # the folder knows whether the machine went down
                metasync=False,
                readahead=False,  # keys are read in no order
                meminit=False,
                writemap=mapped,
            )
            self.environment.reader_check()
            self.facts = self.environment.open_db(b"facts")
            self.slots = tuple(self._slot(number) for number in range(SLOTS))
        except lmdb.Error as error:
            if (free := self._free()) < LITTLE:
                raise NotWritten(self._folder, str(error), free) from error
            raise Damaged(self._folder, str(error)) from error

    @contextmanager
    def writing(self) -> Iterator[Transaction[bytes]]:
        """All that is written with it, or nothing. Raises NotWritten, StoreClosed."""
        try:
            with self._in_use:
                if self._closed:
                    raise StoreClosed(self._folder)
                self.require()
                with self.environment.begin(write=True) as transaction:
                    yield transaction
        except lmdb.Error as error:
            raise NotWritten(self._folder, str(error), self._free()) from error

    def require(self, updates: int = 0, size: int = 0) -> None:
        """See that the disk has room for so many updates more of so many bytes, and their end. Raises NotWritten.

        Only in a map, where the system ends the process without a word when a page finds no room. Else LMDB says so.
        """
        if not self.mapped:
            return
        need = SPARE + LISTED * self._pages() + updates * self._each + size
        free = self._free()
        if free < need:
            raise NotWritten(self._folder, f"{need / 1e6:,.0f} MB may be needed for what comes next", free, need)

    def settle(self) -> bool:
        """Open it anew, not mapped, if it is; tells whether it did. Nobody may be reading. Raises Damaged."""
        with self._in_use:
            if self._closed or not self.mapped:
                return False
            used = self._page * self._pages()
            self.environment.close()
            os.truncate(self._file, used)
            self._open(mapped=False)
        return True

    def close(self) -> None:
        """Force all to disk, and close, once nothing is being written: closed under a writer, LMDB ends the process."""
        with self._in_use:
            self._closed = True
            self.environment.sync(True)  # noqa: FBT003 (takes no keyword)
            self.environment.close()

    def _pages(self) -> int:
        return self.environment.info()["last_pgno"] + 1

    def _free(self) -> int:
        disk = os.statvfs(self._folder)
        return disk.f_frsize * disk.f_bavail

    def _slot(self, number: int) -> Slot:
        return Slot(*(self.environment.open_db(f"{kind}{number}".encode()) for kind in ("entries", "history", "index")))
