from __future__ import annotations

import errno
import json
import os
from datetime import UTC, datetime
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from typing_extensions import override

from services.tools.launcher.folders import Folders
from services.tools.launcher.notices import TerminalNotices
from services.tools.launcher.process_spec import ProcessSpec
from services.tools.launcher.readiness import Runs

if TYPE_CHECKING:
    from pathlib import Path

JOB, SERVER = (ProcessSpec(name, name, (), Runs()) for name in ("job", "server"))


class FullFile(StringIO):
    """A file on a full disk."""

    @override
    def write(self, _: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    made = Folders(tmp_path)
    made.prepare()
    return made


def notices(folders: Folders, file: StringIO) -> TerminalNotices:
    return TerminalNotices(Console(file=file), folders, lambda: datetime.now(UTC), lambda _: None)


@pytest.mark.parametrize("blocked", ["logs/launcher.log", "run/status.new"])
def test_a_change_that_cannot_be_written_is_printed_and_written_with_the_next(folders: Folders, blocked: str) -> None:
    printed = StringIO()
    reporter = notices(folders, printed)
    (folders.data / blocked).mkdir()
    reporter.starting(JOB)
    reporter.died(JOB, "killed", 1)
    reporter.refused(JOB, "No space left on device", 8)
    reporter.stopping(JOB)
    reporter.stopped(JOB, by_itself=True)
    assert "job died, and starts again in 1 s" in printed.getvalue()
    assert "job cannot start, and is tried again every 8 s\n  No space" in printed.getvalue()
    (folders.data / blocked).rmdir()
    reporter.starting(SERVER)
    assert json.loads(folders.status.read_text()) == {"job": "stopped", "server": "starting"}


def test_a_terminal_output_that_cannot_be_written_ends_nothing(folders: Folders) -> None:
    reporter = notices(folders, FullFile())
    reporter.starting(JOB)
    reporter.ready(JOB, 1.0)
    reporter.died(JOB, "killed", 1)
    assert (folders.logs / "launcher.log").read_text().splitlines()[-1].endswith("job: died, starts again in 1 s")
