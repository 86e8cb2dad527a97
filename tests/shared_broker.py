"""One broker for all processes of a test run: the first that needs it starts it, and the run ends it.

Only what cannot be shared has a broker of its own: the tests of a module marked `kills_broker`.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from typing_extensions import override

from tests.services.broker.embedded import EmbeddedBroker, free_port_pair

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = "TEST_RUN_FOLDER"
"""The environment variable with the folder of the run, which the processes of pytest-xdist inherit."""
STATE = "broker.json"


class SharedBroker(EmbeddedBroker):
    """The broker of the run, which another process may have started."""

    def __init__(self, folder: Path, port: int, pid: int) -> None:
        super().__init__(folder, port)
        self._pid = pid

    @property
    @override
    def pid(self) -> int:
        return self._pid

    @override
    def start(self) -> NoReturn:
        raise AssertionError("all tests share this broker: mark the module with pytest.mark.kills_broker")

    kill = stop = start


def begin() -> None:
    """Create the folder of the run, in the process that starts all others."""
    os.environ[FOLDER] = tempfile.mkdtemp(prefix="stateloop-tests-")


def end() -> None:
    """Kill the broker of the run, and remove its folder; in the process that began it."""
    folder = Path(os.environ.pop(FOLDER))
    if (folder / STATE).exists():
        with suppress(ProcessLookupError):  # Ctrl-C has ended it
            os.kill(json.loads((folder / STATE).read_text(encoding="utf-8"))["pid"], signal.SIGKILL)
    shutil.rmtree(folder)


@contextmanager
def exclusive(name: str) -> Iterator[None]:
    """Hold a lock of this name among the processes of the run."""
    with (Path(os.environ[FOLDER]) / f"{name}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def shared_broker() -> SharedBroker:
    """Return the broker of the run; start it if this is the first process that needs it."""
    folder = Path(os.environ[FOLDER])
    with exclusive("broker"):
        if not (folder / STATE).exists():
            started = EmbeddedBroker(folder, free_port_pair())
            started.start()
            port = int(started.bootstrap.rpartition(":")[2])
            (folder / STATE).write_text(json.dumps({"port": port, "pid": started.detach()}), encoding="utf-8")
        state = json.loads((folder / STATE).read_text(encoding="utf-8"))
    return SharedBroker(folder, state["port"], state["pid"])
