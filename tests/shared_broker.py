"""One broker for all processes of a test run. The tests of a module marked `kills_broker` have their own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NoReturn

from typing_extensions import override

from tests.services.tools.broker.embedded import EmbeddedBroker, free_port_pair
from tests.shared import FOLDER, shared_process


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


def shared_broker() -> SharedBroker:
    """Return the broker of the run."""
    described = shared_process("broker", _started)
    return SharedBroker(Path(os.environ[FOLDER]), described["port"], described["pid"])


def _started(folder: Path) -> dict[str, Any]:
    broker = EmbeddedBroker(folder, free_port_pair())
    broker.start()
    return {"port": int(broker.bootstrap.rpartition(":")[2]), "pid": broker.detach()}
