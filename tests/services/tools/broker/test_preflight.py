from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from services.tools.broker.errors import DATA, JARS, DiskFullError, FolderBusyError, FolderUnusableError, PortBusyError
from services.tools.broker.preflight import require_disk, require_free_port, require_idle
from tests.services.tools.broker.embedded import free_ports

if TYPE_CHECKING:
    from pathlib import Path

HOLD_LOCK = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"


def test_a_folder_is_made(tmp_path: Path) -> None:
    require_disk(tmp_path / "a" / "b", 1, DATA)
    assert (tmp_path / "a" / "b").is_dir()


def test_a_full_disk_is_reported_with_the_free_space(tmp_path: Path) -> None:
    free_mb = shutil.disk_usage(tmp_path).free >> 20
    with pytest.raises(DiskFullError, match="free some space") as refused:
        require_disk(tmp_path, free_mb * 2 + 1, DATA)
    assert refused.value.free_mb <= free_mb * 2


def test_a_disk_too_full_to_make_the_folder_is_full_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("pathlib.Path.mkdir", full)
    with pytest.raises(DiskFullError):
        require_disk(tmp_path / "a", 1, DATA)


def test_a_folder_that_cannot_be_made_is_reported_with_why_and_with_its_setting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderUnusableError, match=r"STATELOOP_DATA \(of make up\) or STATELOOP_BROKER_DATA"):
        require_disk(tmp_path / "file" / "data", 1, DATA)
    with pytest.raises(FolderUnusableError, match="or set STATELOOP_JARS to another folder"):
        require_disk(tmp_path / "file" / "jars", 1, JARS)


def test_a_busy_port_is_reported_with_its_setting() -> None:
    port = free_ports(1)
    busy = pytest.raises(PortBusyError, match=f"Port {port} is busy: .*STATELOOP_BROKER_PORT")
    with socket.create_server(("127.0.0.1", port)), busy:
        require_free_port(port)
    require_free_port(port)


def test_a_folder_in_use_by_another_process_is_refused(tmp_path: Path) -> None:
    lock = tmp_path / "log" / ".lock"
    lock.parent.mkdir()
    require_idle(lock.parent)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(FolderBusyError, match="already runs"):
            require_idle(lock.parent)
        process.communicate("\n")
    require_idle(lock.parent)
