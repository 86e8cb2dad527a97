from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from services.tools.launcher import leftovers, processes

if TYPE_CHECKING:
    from pathlib import Path

SERVE = (sys.executable, "-c", "import signal; signal.pause()")


def test_a_noted_process_is_stopped(tmp_path: Path) -> None:
    with subprocess.Popen(SERVE, start_new_session=True) as process:
        leftovers.note(tmp_path, "one", process.pid)
        assert leftovers.noted(tmp_path) == {"one": process.pid}
        assert leftovers.stop(tmp_path) == ["one"]
    assert list(tmp_path.iterdir()) == []


def test_an_id_that_is_another_process_now_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "one.pid").write_text(f"{os.getpid()}\nanother boot/12345\n")
    assert leftovers.stop(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_broken_note_is_removed(tmp_path: Path) -> None:
    (tmp_path / "one.pid").write_text("")
    (tmp_path / "two.pid").write_text("half")
    assert leftovers.stop(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_process_has_one_identity_while_it_runs() -> None:
    with subprocess.Popen(SERVE) as process:
        identity = processes.identity(process.pid)
        assert identity is not None
        assert processes.alive(process.pid, identity)
        process.kill()
    assert processes.identity(process.pid) is None


def test_a_record_that_is_removed_while_it_is_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "gone.pid").symlink_to(tmp_path / "removed")
    assert leftovers.noted(tmp_path) == {}
