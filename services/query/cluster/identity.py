"""The identity of an instance over its restarts: stored in its folder, which one process at a time can have."""

from __future__ import annotations

import fcntl
import os
import uuid
from typing import TYPE_CHECKING, Any

import orjson

from services.query.errors import FolderTakenError
from services.query.store.atomic_write import write_atomically
from services.query.store.errors import StoreFolderError

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY_FILE = "instance.json"
NEW_IDENTITY_FILE = "instance.new"
LOCK_FILE = "instance.lock"


class InstanceFolder:
    """The folder of an instance, locked until it is closed. Raises FolderTakenError, StoreFolderError.

    `store` names the folder, and `run` counts the processes that had it: a process that has it knows that the earlier
    ones have ended. A folder that was copied to an instance of another name gets a new `store`.
    """

    def __init__(self, folder: Path, instance: str) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreFolderError(folder, error) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._start_run(folder, instance)
        except BlockingIOError as error:
            os.close(self._lock)
            raise FolderTakenError(folder) from error
        except OSError as error:
            os.close(self._lock)
            raise StoreFolderError(folder, error) from error

    def close(self) -> None:
        """Release the lock."""
        os.close(self._lock)

    def _start_run(self, folder: Path, instance: str) -> None:
        stored = _read(folder / IDENTITY_FILE)
        known = stored if stored.get("instance") == instance else {}
        self.store = str(known.get("store") or uuid.uuid4().hex)
        self.run = int(known.get("run", 0)) + 1
        identity = {"instance": instance, "store": self.store, "run": self.run}
        content = orjson.dumps(identity, option=orjson.OPT_INDENT_2)
        write_atomically(folder / IDENTITY_FILE, content, folder / NEW_IDENTITY_FILE)  # each run has its own number


def _read(path: Path) -> dict[str, Any]:
    try:
        found = orjson.loads(path.read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        return {}
    return found if isinstance(found, dict) else {}
