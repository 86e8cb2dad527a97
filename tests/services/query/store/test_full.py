"""A disk with little space: nothing is lost, the process gets an error, and every page of a map has space."""

from __future__ import annotations

import errno
import os
import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from services.query.store import environment
from services.query.store.errors import StoreFolderError, StoreWriteError
from services.query.store.store import Store
from services.query.store.write_batch import CLEAR_SIZE
from tests.services.query.store.declared import named, update

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BLOCK = 512
PAGE = 4096
RESERVE = 1 << 20
"""Instead of 4 MB: so small that an uncounted page makes a test fail."""


class Disk:
    """A simulated disk of this size for one file."""

    def __init__(self, file: Path, size: int) -> None:
        self.file = file
        self.size = size

    @property
    def used(self) -> int:
        """Return the bytes that the file takes."""
        return self.file.stat().st_blocks * BLOCK if self.file.exists() else 0

    def statvfs(self, _: object) -> os.statvfs_result:
        """Return the statistics as the system call does."""
        free = max(0, self.size - self.used) // PAGE
        return os.statvfs_result((PAGE, PAGE, 1 << 20, free, free, 0, 0, 0, 0, 255))


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """Limit the size of all files: a write beyond it is only partial."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Give a disk of 40 MB for the store."""
    made = Disk(tmp_path / "data.mdb", 40_000_000)
    monkeypatch.setattr(os, "statvfs", made.statvfs)
    monkeypatch.setattr(environment, "RESERVE", RESERVE)
    return made


@pytest.mark.parametrize("size", [100, 3000, 100_000])
@pytest.mark.parametrize("key", ["{:06}", "{:0498}"])
def test_a_map_never_grows_beyond_the_disk(disk: Disk, tmp_path: Path, size: int, key: str) -> None:
    store = Store(tmp_path, named(history=1), "boot")
    batch = 2_000_000 // (size + len(key.format(0)))
    written, full = 0, False
    while not full and written < 100:
        keys = (key.format((written * batch + one) * 7919 % 999_983) for one in range(batch))
        try:
            store.apply([update(one, 1, written + 1, status=one[-1:], text="x" * size) for one in keys], {0: written})
        except StoreWriteError as error:
            assert "make room and start the service again" in str(error)  # noqa: PT017 (the rest is looked at too)
            full = True
        else:
            written += 1
        assert disk.used <= disk.size
    assert full
    assert written
    assert store.position(0) == written - 1
    store.close()


def test_dropping_a_bucket_reserves_space_for_the_free_list(disk: Disk, tmp_path: Path) -> None:
    disk.size = 1 << 32
    store = Store(tmp_path, named(history=1, indexes=()), "boot")
    for piece in range(20):
        many = [update(f"{piece * 5000 + key}", 1, 1, text="x" * 3000) for key in range(5000)]
        store.apply(many, {0: 1})
    disk.size = disk.used + RESERVE + 500_000
    with pytest.raises(StoreWriteError, match="MB may be needed"):
        store.apply([update("later", 10_000, 1)], {0: 2})
    disk.size = 1 << 32
    store.apply([update("later", 10_000, 1)], {0: 2})
    assert (store.position(0), store.key_count()) == (2, 1)
    store.close()


def test_clearing_a_partition_checks_the_free_space(disk: Disk, tmp_path: Path) -> None:
    store = Store(tmp_path, named(history=1), "boot")
    store.apply([update(str(key), 1, 1) for key in range(CLEAR_SIZE)], {0: 1})
    disk.size = disk.used + 2 * RESERVE
    with pytest.raises(StoreWriteError, match="MB may be needed"):
        store.clear_partition(0)
    assert (store.position(0), store.key_count()) == (1, CLEAR_SIZE)
    store.close()


def test_a_store_with_history_is_not_mapped(disk: Disk, tmp_path: Path) -> None:
    """The history needs up to 100 KB for each changed key, which is not known before."""
    store = Store(tmp_path, named(history=4), "boot")
    assert disk.file.stat().st_size < disk.size
    store.apply([update(str(key), 1, 1, text="x" * 100_000) for key in range(100)], {0: 1})
    store.apply([update(str(key), 1, 2) for key in range(100)], {0: 2})
    assert disk.file.stat().st_size < disk.size
    store.close()


def test_a_file_that_is_not_mapped_reuses_its_own_space(disk: Disk, tmp_path: Path) -> None:
    store = Store(tmp_path, named(history=1), "boot")
    store.apply([update("a", 1, 1)], {0: 1})
    store.finish_bulk_load()
    disk.size = 0
    store.apply([update("a", 1, 2)], {0: 2})
    assert store.position(0) == 2
    store.close()


@pytest.mark.parametrize(
    ("free", "message"),
    [
        (100_000, r"The disk of {} is full \(mdb_txn_commit: Input/output error; 0 MB are free\): make room"),
        (1 << 30, r"{} could not be written \(.*1,074 MB are free\): the system's log has .*STATELOOP_QUERY_DATA"),
    ],
)
def test_a_full_disk_and_a_broken_one_are_distinguished(disk: Disk, tmp_path: Path, free: int, message: str) -> None:
    """LMDB reports the same error for both: a partial write."""
    store = Store(tmp_path, named(history=4), "boot")
    store.apply([update("a", 1, 1)], {0: 1})
    disk.size = disk.used + free
    with (
        no_file_beyond(disk.file.stat().st_size + PAGE * 3 // 2),
        pytest.raises(StoreWriteError, match=message.format(tmp_path)),
    ):
        store.apply([update("b", 1, 1, text="x" * 100_000)], {0: 2})
    assert (store.position(0), store.get("b")) == (1, None)
    store.apply([update("b", 1, 1)], {0: 2})
    store.close()


def test_a_store_is_not_created_without_space_for_its_databases(disk: Disk, tmp_path: Path) -> None:
    disk.size = RESERVE - 1
    with pytest.raises(StoreWriteError, match="make room and start the service again"):
        Store(tmp_path, named(history=1), "boot")
    assert not disk.used
    disk.size = RESERVE
    Store(tmp_path, named(history=1), "boot").close()


def test_a_full_disk_is_not_reported_as_a_damaged_file(disk: Disk, tmp_path: Path) -> None:
    disk.size = PAGE
    with no_file_beyond(PAGE), pytest.raises(StoreWriteError, match="make room and start the service again"):
        Store(tmp_path, named(history=4), "boot")


def test_a_folder_on_a_full_disk_is_reported(tmp_path: Path) -> None:
    with no_file_beyond(0), pytest.raises(StoreFolderError, match="make it writable"):
        Store(tmp_path, named(), "boot")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert "make room on its disk" in str(StoreFolderError(tmp_path, full))
