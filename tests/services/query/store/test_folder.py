"""The owner of a folder, and the cases in which its data are discarded."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import Mock

import orjson
import pytest

from services.query.store import folder as folder_module
from services.query.store.environment import FILE, Databases, is_cut_off
from services.query.store.errors import FolderInUseError, ForeignFolderError, StoreDamagedError, StoreFolderError
from services.query.store.folder import DESCRIPTION, NEW, StoreFolder
from services.query.store.store import Store
from tests.services.query.store.declared import named, update

if TYPE_CHECKING:
    from pathlib import Path

    from contracts.model.named_state import NamedState

OPEN = """
import sys
from pathlib import Path
from services.query.store.errors import FolderInUseError
from services.query.store.store import Store
from tests.services.query.store.declared import named
try:
    Store(Path(sys.argv[1]), named(), "boot")
except FolderInUseError as error:
    print(error)
"""


def written(folder: Path, *, close: bool = True) -> None:
    """Write one key; without `close`, leave the store open as a killed process does."""
    store = Store(folder, named(), "boot")
    store.apply([update("a", 1, 1)], {0: 5})
    if close:
        store.close()
    else:
        store._databases.environment.close()  # noqa: SLF001
        store._folder.release()  # noqa: SLF001


def reopened(folder: Path, state: NamedState | None = None, boot: str = "boot") -> int | None:
    """Open the store and return its position."""
    store = Store(folder, state or named(), boot)
    try:
        assert (store.get("a") is None) == (store.position(0) is None)
        return store.position(0)
    finally:
        store.close()


def test_a_store_resumes_at_its_position(tmp_path: Path) -> None:
    written(tmp_path)
    assert reopened(tmp_path) == 5


def test_a_store_survives_a_kill(tmp_path: Path) -> None:
    written(tmp_path, close=False)
    assert reopened(tmp_path) == 5


def test_a_closed_store_survives_a_restart_of_the_machine(tmp_path: Path) -> None:
    written(tmp_path)
    assert reopened(tmp_path, boot="another") == 5


def test_an_open_store_is_discarded_after_the_machine_went_down(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written(tmp_path, close=False)
    assert reopened(tmp_path, boot="another") is None
    assert "the store starts empty" in caplog.text


def test_a_reopened_store_counts_as_open(tmp_path: Path) -> None:
    written(tmp_path)
    written(tmp_path, close=False)
    assert reopened(tmp_path, boot="another") is None


def test_a_folder_of_a_first_start_that_was_killed_can_be_used(tmp_path: Path) -> None:
    (tmp_path / NEW).write_bytes(b"{")
    written(tmp_path)
    assert reopened(tmp_path) == 5


def test_a_store_of_another_format_is_discarded(tmp_path: Path) -> None:
    written(tmp_path)
    about = orjson.loads((tmp_path / DESCRIPTION).read_bytes())
    (tmp_path / DESCRIPTION).write_bytes(orjson.dumps({**about, "format": 999}))
    assert reopened(tmp_path) is None


@pytest.mark.parametrize(
    "state",
    [named(lifetime=50), named(lifetime=None), named(history=1), named(indexes=()), named(topic="another")],
    ids=["lifetime", "no lifetime", "history", "indexes", "topic"],
)
def test_a_store_of_another_declaration_is_discarded(tmp_path: Path, state: NamedState) -> None:
    written(tmp_path)
    assert reopened(tmp_path, state) is None


def test_a_store_is_discarded_when_the_topic_has_more_partitions(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Stores of earlier releases, without the number of partitions, stay."""
    written(tmp_path)
    about = orjson.loads((tmp_path / DESCRIPTION).read_bytes())
    del about["partitions"]
    (tmp_path / DESCRIPTION).write_bytes(orjson.dumps(about))
    assert reopened(tmp_path) == 5
    assert reopened(tmp_path, replace(named(), partitions=named().partitions + 1)) is None
    assert "the store starts empty" in caplog.text


@pytest.mark.parametrize("is_killed_before_it_writes", [False, True])
def test_what_has_expired_stays_so_when_the_topic_has_more_partitions(
    tmp_path: Path, *, is_killed_before_it_writes: bool
) -> None:
    """All instances start again then, and none has the watermark of another one."""
    state = named()
    store = Store(tmp_path, state, "boot")
    store.advance_watermark(7_000_000)
    store.close_windows(6_000_000)
    store.apply((), {0: 5})
    store.close()
    for added in (1, 2):
        state = replace(state, partitions=state.partitions + added)
        if is_killed_before_it_writes:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(StoreFolder, "_write", Mock(side_effect=KeyboardInterrupt))
                with pytest.raises(KeyboardInterrupt):
                    Store(tmp_path, state, "boot")
        store = Store(tmp_path, state, "boot")
        assert (store.position(0), store.watermark(), store._complete) == (None, 7_000_000, 6_000_000)  # noqa: SLF001
        store.close()
    assert Store(tmp_path, named(history=1), "boot").watermark() == 0, "of another declaration"


def test_a_longer_history_keeps_the_store(tmp_path: Path) -> None:
    written(tmp_path)
    assert reopened(tmp_path, named(history=9)) == 5


def test_a_foreign_folder_is_rejected_and_unchanged(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_text("precious")
    with pytest.raises(ForeignFolderError, match="empty it, or name another"):
        Store(tmp_path, named(), "boot")
    assert (tmp_path / "data.mdb").read_text() == "precious"


def test_a_damaged_file_is_reported_with_a_remedy(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "data.mdb").write_bytes(b"x" * 9999)
    with pytest.raises(StoreDamagedError, match="delete it"):
        Store(tmp_path, named(), "boot")
    (tmp_path / "data.mdb").unlink()
    assert reopened(tmp_path) is None


def test_a_store_that_is_cut_off_starts_empty(tmp_path: Path) -> None:
    written(tmp_path)
    file = tmp_path / FILE
    os.truncate(file, file.stat().st_size // 2)
    process = subprocess.run([sys.executable, "-c", OPEN, tmp_path], check=False)  # a read behind the end kills it
    assert process.returncode == 0
    assert reopened(tmp_path) is None


def test_the_file_has_its_unused_last_pages(tmp_path: Path) -> None:
    databases = Databases(tmp_path, 0, history=True)
    with databases.writing() as transaction:
        for number in range(100):
            transaction.put(bytes([number]), bytes(20_000), db=databases.facts)
        for number in range(50, 100):
            transaction.delete(bytes([number]), db=databases.facts)
    databases.environment.close()  # as a killed process does
    assert not is_cut_off(tmp_path)


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreFolderError, match="make it writable"):
        Store(tmp_path / "file" / "store", named(), "boot")


def test_two_processes_cannot_open_one_folder(tmp_path: Path) -> None:
    store = Store(tmp_path, named(), "boot")
    output = subprocess.run([sys.executable, "-c", OPEN, tmp_path], capture_output=True, text=True, check=True).stdout
    assert "a folder of its own" in output
    with pytest.raises(FolderInUseError, match="is in use by process"):
        Store(tmp_path, named(), "boot")
    store.close()
    assert reopened(tmp_path) is None


def test_a_full_disk_does_not_hide_why_the_service_exits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = StoreFolder(tmp_path, {}, "boot")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(folder_module, "write_atomically", full)
        folder.close((0, 0))
    StoreFolder(tmp_path, {}, "boot").close((0, 0))
