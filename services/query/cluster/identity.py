"""Who an instance is over its restarts: what its folder says, which one process at a time has."""

from __future__ import annotations

import fcntl
import os
import uuid
from typing import TYPE_CHECKING, Any

import orjson

from services.query.cluster.errors import FolderTakenError
from services.query.store import atomic_write
from services.query.store.errors import FolderUnusable

if TYPE_CHECKING:
    from pathlib import Path

ABOUT = "instance.json"
NEW = "instance.new"
LOCK = "instance.lock"


class Home:
    """The folder of an instance, ours until it is closed. Raises FolderTakenError, FolderUnusable.

    `store` names it, and `run` counts the processes that had it: whoever has it knows that the earlier ones have
    ended. A copy that was given to an instance of another name is another folder.
    """

    def __init__(self, folder: Path, instance: str) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise FolderUnusable(folder, error) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._begin(folder, instance)
        except BlockingIOError as error:
            os.close(self._lock)
            raise FolderTakenError(folder) from error
        except OSError as error:
            os.close(self._lock)
            raise FolderUnusable(folder, error) from error

    def close(self) -> None:
        """Let another process have it."""
        os.close(self._lock)

    def _begin(self, folder: Path, instance: str) -> None:
        about = _read(folder / ABOUT)
        known = about if about.get("instance") == instance else {}
        self.store = str(known.get("store") or uuid.uuid4().hex)
        self.run = int(known.get("run", 0)) + 1
        told = orjson.dumps({"instance": instance, "store": self.store, "run": self.run}, option=orjson.OPT_INDENT_2)
        atomic_write.write(folder / ABOUT, told, folder / NEW)  # a run must not be counted twice


def _read(path: Path) -> dict[str, Any]:
    try:
        found = orjson.loads(path.read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        return {}
    return found if isinstance(found, dict) else {}
