"""LMDB as the store uses it: the databases of one state, in one file, opened once."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import lmdb

from services.query.storage.buckets import SLOTS
from services.query.storage.errors import Damaged, NotWritten, StoreClosed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lmdb import Environment, Transaction, _Database

AT_LEAST = 1 << 40
"""What the file may grow to, in bytes, or to the size of its disk if that is more: only addresses are taken for it."""
READERS = 16


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

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._in_use = threading.Lock()
        self._closed = False
        disk = os.statvfs(folder)
        try:
            self.environment: Environment = lmdb.open(
                str(folder),
                map_size=max(AT_LEAST, disk.f_frsize * disk.f_blocks),
                max_dbs=1 + 3 * SLOTS,
                max_readers=READERS,
                sync=False,  # the folder knows whether the machine went down
                metasync=False,
                readahead=False,  # keys are read in no order
                meminit=False,
            )
            self.environment.reader_check()
            self.facts = self.environment.open_db(b"facts")
            self.slots = tuple(self._slot(number) for number in range(SLOTS))
        except lmdb.Error as error:
            raise Damaged(folder, str(error)) from error

    @contextmanager
    def writing(self) -> Iterator[Transaction[bytes]]:
        """All that is written with it, or nothing. Raises NotWritten, StoreClosed."""
        try:
            with self._in_use:
                if self._closed:
                    raise StoreClosed(self._folder)
                with self.environment.begin(write=True) as transaction:
                    yield transaction
        except lmdb.Error as error:
            disk = os.statvfs(self._folder)
            raise NotWritten(self._folder, str(error), disk.f_frsize * disk.f_bavail) from error

    def close(self) -> None:
        """Force all to disk, and close, once nothing is being written: closed under a writer, LMDB ends the process."""
        with self._in_use:
            self._closed = True
            self.environment.sync(True)  # noqa: FBT003 (takes no keyword)
            self.environment.close()

    def _slot(self, number: int) -> Slot:
        return Slot(*(self.environment.open_db(f"{kind}{number}".encode()) for kind in ("entries", "history", "index")))
