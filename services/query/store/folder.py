"""The folder of a store: whose it is, in which format, and whether what is in it survived."""

from __future__ import annotations

import fcntl
import logging
import os
from typing import TYPE_CHECKING

import orjson

from services.query.store import atomic_write
from services.query.store.errors import FolderInUse, FolderUnusable, NotOurs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

log = logging.getLogger(__name__)

FORMAT = 2
ABOUT = "store.json"
LOCK = "lock"
NEW = f"{ABOUT}.new"
"""What is being written, and is left by a process that was killed at it."""
DATA = ("data.mdb", "lock.mdb")


class Folder:
    """Ours alone while it is open; emptied when it does not hold what this release wrote of the same state.

    Nothing is forced to disk while it is open: a process that is killed loses nothing, but a machine that goes down
    does. So if the machine was started since, and the store was not closed before, it begins anew. `boot` names the
    start of the machine. Raises FolderInUse, NotOurs, FolderUnusable.
    """

    def __init__(self, path: Path, shape: Mapping[str, Any], boot: str) -> None:
        self.path = path
        self._about = {"format": FORMAT, "shape": dict(shape), "boot": boot}
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise FolderUnusable(path, error) from error
        try:
            self._take()
            self._check()
            self._write(closed=False)
        except OSError as error:
            os.close(self._lock)
            raise FolderUnusable(path, error) from error
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """All is on disk: say so if there is room for that, and let others have it."""
        try:
            self._write(closed=True)
        except OSError as error:  # why the service ends is more than this
            facts = {"folder": str(self.path), "detail": str(error)}
            log.warning("that the store was closed could not be noted", extra={"facts": facts})
        self.release()

    def release(self) -> None:
        """Let others have it."""
        os.close(self._lock)

    def _take(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FolderInUse(self.path, os.pread(self._lock, 100, 0).decode() or "unknown") from error
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)

    def _check(self) -> None:
        about = self._read()
        if about is None:
            if any(one.name not in {LOCK, ABOUT, NEW} for one in self.path.iterdir()):
                raise NotOurs(self.path)
            return
        if why := self._unfit(about):
            log.warning("the store begins anew", extra={"facts": {"folder": str(self.path), "reason": why}})
            for name in DATA:
                (self.path / name).unlink(missing_ok=True)

    def _unfit(self, about: Mapping[str, Any]) -> str | None:
        if about.get("format") != FORMAT:
            return f"its format is {about.get('format')}, and this release's is {FORMAT}"
        if about.get("shape") != self._about["shape"]:
            return "the state is declared otherwise than when it was written"
        if not about.get("closed") and about.get("boot") != self._about["boot"]:
            return "the machine went down while it was open"
        return None

    def _read(self) -> dict[str, Any] | None:
        try:
            found = orjson.loads((self.path / ABOUT).read_bytes())
        except (FileNotFoundError, orjson.JSONDecodeError):
            return None
        return found if isinstance(found, dict) and "format" in found else None

    def _write(self, *, closed: bool) -> None:
        about = orjson.dumps({**self._about, "closed": closed}, option=orjson.OPT_INDENT_2)
        atomic_write.write(self.path / ABOUT, about, self.path / NEW)
