from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from services.query.cluster.identity import IDENTITY_FILE, InstanceFolder
from services.query.errors import FolderTakenError
from services.query.store.errors import StoreFolderError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_restart_is_another_run_of_the_same_store(tmp_path: Path) -> None:
    first = InstanceFolder(tmp_path, "one")
    first.close()
    again = InstanceFolder(tmp_path, "one")
    again.close()
    assert (again.store, again.run) == (first.store, first.run + 1)


def test_a_folder_has_one_instance_at_a_time(tmp_path: Path) -> None:
    first = InstanceFolder(tmp_path, "one")
    with pytest.raises(FolderTakenError, match="STATELOOP_QUERY_DATA"):
        InstanceFolder(tmp_path, "one")
    first.close()
    InstanceFolder(tmp_path, "one").close()


def test_a_folder_copied_to_another_instance_is_another_store(tmp_path: Path) -> None:
    first = InstanceFolder(tmp_path, "one")
    first.close()
    other = InstanceFolder(tmp_path, "two")
    other.close()
    assert other.store != first.store


@pytest.mark.parametrize("broken", ["", "{", "[]", "7"])
def test_an_invalid_identity_file_is_replaced(tmp_path: Path, broken: str) -> None:
    (tmp_path / IDENTITY_FILE).write_text(broken)
    home = InstanceFolder(tmp_path, "one")
    home.close()
    assert home.run == 1


def test_an_unusable_folder_is_reported_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreFolderError, match="STATELOOP_QUERY_DATA"):
        InstanceFolder(tmp_path / "file", "one")
    (tmp_path / "instance.new").mkdir()
    for _ in range(2):
        with pytest.raises(StoreFolderError, match="make it writable"):
            InstanceFolder(tmp_path, "one")
