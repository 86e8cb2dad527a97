"""A second broker, which joins the cluster of an embedded one."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient

from services.tools.broker.__main__ import jvm_command
from services.tools.broker.jars import classpath
from services.tools.broker.java import find_java
from services.tools.broker.readiness import wait_until
from services.tools.broker.storage import format_command
from tests.services.tools.broker.embedded import CHECKOUT, READY_S, free_ports

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

NODE = 2


class JoinedBroker:
    """The broker of number 2, without a controller. `data` is the data folder of the embedded broker."""

    def __init__(self, data: Path, bootstrap: str, folder: Path) -> None:
        self._data = data
        self._bootstrap = bootstrap
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start the broker, and return when the other one lists it."""
        java, jars = find_java(), classpath(CHECKOUT / ".stateloop" / "jars", "broker")
        properties = self._properties()
        command = format_command(java, jars, properties, _read(self._data / "log" / "meta.properties")["cluster.id"])
        subprocess.run(command, capture_output=True, check=True)
        with (self._folder / "broker.log").open("wb") as log:
            self._process = subprocess.Popen(jvm_command(java, jars, "256m", properties), stdout=log, stderr=log)
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        wait_until(lambda: NODE in admin.list_topics(timeout=READY_S).brokers, "the second broker has joined", READY_S)
        return self

    def __exit__(self, *_: object) -> None:
        """Kill it."""
        self.kill()

    def kill(self) -> None:
        """Kill the broker as kill -9 does, and return when it is gone."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def _properties(self) -> Path:
        """Write the properties: those of the embedded broker, but for what has to be different."""
        listener = f"PLAINTEXT://127.0.0.1:{free_ports(1)}"
        own = {
            "process.roles": "broker",
            "node.id": str(NODE),
            "listeners": listener,
            "advertised.listeners": listener,
            "log.dirs": str(self._folder / "log"),
        }
        path = self._folder / "server.properties"
        properties = _read(self._data / "server.properties") | own
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()), encoding="ascii")
        return path


def _read(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="ascii").splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))
