"""The memory, disk and threads that a service uses in addition to CPU."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

BLOCK = 512
"""Bytes, of st_blocks in stat(2)."""


def disk_mb(folder: Path) -> float:
    """Return the disk space of the files below a folder, in MB of 1,000,000 bytes, without holes."""
    return sum(path.stat().st_blocks for path in folder.rglob("*") if path.is_file()) * BLOCK / 1e6


def own_mb(pids: Iterable[int]) -> float:
    """The memory of these processes that is no file's: what the system cannot take back. The same unit."""
    return sum(_anonymous_kb(pid) for pid in pids) * 1024 / 1e6


def _anonymous_kb(pid: int) -> int:
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon:")), 0)
    return 0
