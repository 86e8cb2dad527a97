"""The folder of a store: its lock, its format, and whether its content survived the last stop."""

from __future__ import annotations

import fcntl
import logging
import os
from typing import TYPE_CHECKING

import orjson

from services.query.store.atomic_write import write_atomically
from services.query.store.environment import FILE, is_cut_off, read_watermarks
from services.query.store.errors import FolderInUseError, ForeignFolderError, StoreFolderError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

log = logging.getLogger(__name__)

FORMAT = 3
DESCRIPTION = "store.json"
LOCK = "lock"
NEW = f"{DESCRIPTION}.new"
"""The temporary file, which stays when a process is killed while it writes."""
DATA = (FILE, "lock.mdb")
WATERMARKS = "watermarks"


class StoreFolder:
    """Locks the folder while it is open, and empties it unless this release wrote it for the same state.

    So does another number of `partitions`, by which keys are in other ones. What has expired or closed stays so: all
    instances start again then, and no other one has the `watermarks`.

    An open store is not synced to disk: a killed process loses nothing, a machine that goes down does. So the store
    starts empty if it was not closed before the machine's last start, which `boot` identifies, and if its file is cut
    off. Raises FolderInUseError, ForeignFolderError, StoreFolderError.
    """

    def __init__(self, path: Path, shape: Mapping[str, Any], boot: str, partitions: int | None = None) -> None:
        self.path = path
        self._description = {"format": FORMAT, "shape": dict(shape), "boot": boot, "partitions": partitions}
        self.watermarks = (0, 0)
        """The watermarks, in milliseconds since 1970, that the store had when it was closed, or repartitioned."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreFolderError(path, error) from error
        try:
            self._lock_exclusively()
            self._check()
            self._write(closed=False)
        except OSError as error:
            os.close(self._lock)
            raise StoreFolderError(path, error) from error
        except BaseException:
            os.close(self._lock)
            raise

    def close(self, watermarks: tuple[int, int]) -> None:
        """Record the watermarks, and that everything is on disk, if there is room for that; release the lock."""
        self.watermarks = watermarks
        try:
            self._write(closed=True)
        except OSError as error:  # the error that stops the service matters more
            facts = {"folder": str(self.path), "detail": str(error)}
            log.warning("the closing of the store could not be recorded", extra={"facts": facts})
        self.release()

    def release(self) -> None:
        """Release the lock."""
        os.close(self._lock)

    def _lock_exclusively(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FolderInUseError(self.path, os.pread(self._lock, 100, 0).decode() or "unknown") from error
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)

    def _check(self) -> None:
        description = self._read()
        if description is None:
            if any(one.name not in {LOCK, DESCRIPTION, NEW} for one in self.path.iterdir()):
                raise ForeignFolderError(self.path)
            return
        reason = self._unusable(description)
        if reason is None:
            self.watermarks = _watermarks_of(description)
            if reason := self._repartitioned(description):
                self._keep_watermarks(description)
        if reason:
            log.warning("the store starts empty", extra={"facts": {"folder": str(self.path), "reason": reason}})
            for name in DATA:
                (self.path / name).unlink(missing_ok=True)

    def _unusable(self, description: Mapping[str, Any]) -> str | None:
        if description.get("format") != FORMAT:
            return f"its format is {description.get('format')}, and this release's is {FORMAT}"
        if description.get("shape") != self._description["shape"]:
            return "the declaration of the state has changed"
        if not description.get("closed") and description.get("boot") != self._description["boot"]:
            return "the machine went down while it was open"
        if is_cut_off(self.path):
            return "its file is cut off"
        return None

    def _repartitioned(self, description: Mapping[str, Any]) -> str | None:
        before, now = description.get("partitions"), self._description["partitions"]
        if before is not None and before != now:  # releases before 0.3.0 did not write it
            return f"its topic had {before} partitions, and has {now}"
        return None

    def _keep_watermarks(self, description: Mapping[str, Any]) -> None:
        """Write them down before the file is deleted: the process may be killed in between."""
        found = read_watermarks(self.path)
        self.watermarks = max(found[0], self.watermarks[0]), max(found[1], self.watermarks[1])
        self._replace({**description, WATERMARKS: self.watermarks})

    def _read(self) -> dict[str, Any] | None:
        try:
            found = orjson.loads((self.path / DESCRIPTION).read_bytes())
        except (FileNotFoundError, orjson.JSONDecodeError):
            return None
        return found if isinstance(found, dict) and "format" in found else None

    def _write(self, *, closed: bool) -> None:
        self._replace({**self._description, "closed": closed, WATERMARKS: self.watermarks})

    def _replace(self, description: Mapping[str, Any]) -> None:
        text = orjson.dumps(description, option=orjson.OPT_INDENT_2)
        write_atomically(self.path / DESCRIPTION, text, self.path / NEW)


def _watermarks_of(description: Mapping[str, Any]) -> tuple[int, int]:
    """Return those that a description has; zeros of an earlier release's."""
    watermark, complete = description.get(WATERMARKS, (0, 0))
    return watermark, complete
