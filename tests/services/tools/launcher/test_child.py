from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING

import pytest

from services.tools.launcher import leftovers, processes
from services.tools.launcher.child import Child
from services.tools.launcher.errors import StartFailedError
from services.tools.launcher.folders import Folders
from services.tools.launcher.process_spec import ProcessSpec
from services.tools.launcher.readiness import Runs

if TYPE_CHECKING:
    from pathlib import Path

SERVE = (sys.executable, "-c", "import signal; signal.pause()")


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    made = Folders(tmp_path)
    made.prepare()
    return made


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the assertion fails by itself
def test_a_process_that_cannot_be_recorded_is_killed(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    started = list[int]()

    def note(_: Path, __: str, pid: int) -> None:
        started.append(pid)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(leftovers, "note", note)
    try:
        with pytest.raises(StartFailedError, match=r"server did not start: .*No space left on device"):
            Child(ProcessSpec("server", "", SERVE, Runs()), folders)
        assert list(map(processes.identity, started)) == [None]
    finally:
        for pid in started:
            processes.kill(pid)


def test_a_command_that_the_system_cannot_run_has_not_started(folders: Folders) -> None:
    with pytest.raises(StartFailedError, match=r"server did not start: .*no-such-command"):
        Child(ProcessSpec("server", "", ("no-such-command",), Runs()), folders)
    assert leftovers.noted(folders.run) == {}
