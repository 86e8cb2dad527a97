"""Whose a folder is, and when what is in it counts no more."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
import pytest

from services.query.store import folder as folder_module
from services.query.store.errors import FolderInUseError, ForeignFolderError, StoreDamagedError, StoreFolderError
from services.query.store.folder import DESCRIPTION, NEW, StoreFolder
from services.query.store.lmdb_store import LmdbStore
from tests.services.query.store.declared import named, update

if TYPE_CHECKING:
    from pathlib import Path

    from contracts.model.named_state import NamedState

OPEN = """
import sys
from pathlib import Path
from services.query.store.errors import FolderInUseError
from services.query.store.lmdb_store import LmdbStore
from tests.services.query.store.declared import named
try:
    LmdbStore(Path(sys.argv[1]), named(), "boot")
except FolderInUseError as error:
    print(error)
"""


def written(folder: Path, *, close: bool = True) -> None:
    """One key in a store, which is left open as a killed process leaves it."""
    store = LmdbStore(folder, named(), "boot")
    store.apply([update("a", 1, 1)], {0: 5})
    if close:
        store.close()
    else:
        store._databases.environment.close()  # noqa: SLF001
        store._folder.release()  # noqa: SLF001


def reopened(folder: Path, state: NamedState | None = None, boot: str = "boot") -> int | None:
    """The position found there."""
    store = LmdbStore(folder, state or named(), boot)
    try:
        assert (store.get("a") is None) == (store.position(0) is None)
        return store.position(0)
    finally:
        store.close()


def test_goes_on_where_it_was(tmp_path: Path) -> None:
    written(tmp_path)
    assert reopened(tmp_path) == 5


def test_survives_a_kill(tmp_path: Path) -> None:
    written(tmp_path, close=False)
    assert reopened(tmp_path) == 5


def test_survives_a_restart_of_the_machine_if_it_was_closed(tmp_path: Path) -> None:
    written(tmp_path)
    assert reopened(tmp_path, boot="another") == 5


def test_begins_anew_when_the_machine_went_down(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    written(tmp_path, close=False)
    assert reopened(tmp_path, boot="another") is None
    assert "the store starts empty" in caplog.text


def test_is_in_use_again_while_it_is_open(tmp_path: Path) -> None:
    written(tmp_path)
    written(tmp_path, close=False)
    assert reopened(tmp_path, boot="another") is None


def test_first_start_that_was_killed_while_it_wrote_is_no_stranger(tmp_path: Path) -> None:
    (tmp_path / NEW).write_bytes(b"{")
    written(tmp_path)
    assert reopened(tmp_path) == 5


def test_begins_anew_in_another_format(tmp_path: Path) -> None:
    written(tmp_path)
    about = orjson.loads((tmp_path / DESCRIPTION).read_bytes())
    (tmp_path / DESCRIPTION).write_bytes(orjson.dumps({**about, "format": 999}))
    assert reopened(tmp_path) is None


@pytest.mark.parametrize(
    "state",
    [named(lifetime=50), named(lifetime=None), named(history=1), named(indexes=()), named(topic="another")],
    ids=["lifetime", "no lives", "history", "indexes", "topic"],
)
def test_begins_anew_when_the_state_is_declared_otherwise(tmp_path: Path, state: NamedState) -> None:
    written(tmp_path)
    assert reopened(tmp_path, state) is None


def test_begins_anew_when_the_topic_has_more_partitions(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Not when an earlier release wrote it, which did not note their number."""
    written(tmp_path)
    about = orjson.loads((tmp_path / DESCRIPTION).read_bytes())
    del about["partitions"]
    (tmp_path / DESCRIPTION).write_bytes(orjson.dumps(about))
    assert reopened(tmp_path) == 5
    assert reopened(tmp_path, replace(named(), partitions=named().partitions + 1)) is None
    assert "the store starts empty" in caplog.text


def test_keeps_more_versions_without_beginning_anew(tmp_path: Path) -> None:
    written(tmp_path)
    assert reopened(tmp_path, named(history=9)) == 5


def test_leaves_a_strangers_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_text("precious")
    with pytest.raises(ForeignFolderError, match="empty it, or name another"):
        LmdbStore(tmp_path, named(), "boot")
    assert (tmp_path / "data.mdb").read_text() == "precious"


def test_says_what_to_do_with_a_damaged_file(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "data.mdb").write_bytes(b"x" * 9999)
    with pytest.raises(StoreDamagedError, match="delete it"):
        LmdbStore(tmp_path, named(), "boot")
    (tmp_path / "data.mdb").unlink()
    assert reopened(tmp_path) is None


def test_says_when_a_folder_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreFolderError, match="make it writable"):
        LmdbStore(tmp_path / "file" / "store", named(), "boot")


def test_two_processes_cannot_have_one(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path, named(), "boot")
    told = subprocess.run([sys.executable, "-c", OPEN, tmp_path], capture_output=True, text=True, check=True).stdout
    assert "a folder of its own" in told
    with pytest.raises(FolderInUseError, match="is in use by process"):
        LmdbStore(tmp_path, named(), "boot")
    store.close()
    assert reopened(tmp_path) is None


def test_a_full_disk_does_not_hide_why_the_service_exits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = StoreFolder(tmp_path, {}, "boot")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(folder_module, "write_atomically", full)
        folder.close()
    StoreFolder(tmp_path, {}, "boot").close()
