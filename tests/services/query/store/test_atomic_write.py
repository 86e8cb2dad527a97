from __future__ import annotations

import os
from typing import TYPE_CHECKING

from services.query.store.atomic_write import write_atomically

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_file_is_synced_before_the_rename_and_the_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records each fsync: whether it was of the folder, and whether the file had its name then."""
    path, forced = tmp_path / "it", list[tuple[bool, bool]]()

    def noted(descriptor: int) -> None:
        folder = os.fstat(descriptor).st_ino == tmp_path.stat().st_ino
        forced.append((folder, path.exists()))

    monkeypatch.setattr(os, "fsync", noted)
    write_atomically(path, b"content", tmp_path / "new")
    assert path.read_bytes() == b"content"
    assert forced == [(False, False), (True, True)]
    assert not (tmp_path / "new").exists()
