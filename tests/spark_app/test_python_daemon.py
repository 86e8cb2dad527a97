"""The daemon of Python workers, as Spark starts it, without Spark."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from services.broker.readiness import wait_until
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Callable

MODULE = "spark_app.python_daemon"
CHECKOUT = Path(__file__).parents[2]
WRITES = "def main(infile, outfile):\n    infile.read(1)\n    outfile.write(bytes(100))\n"
FAILS = "def main(infile, outfile):\n    raise ValueError('of a worker')\n"


def output_of_a_worker(folder: Path, source: str, talk: Callable[[socket.socket], object]) -> str:
    """Return what the daemon and a worker print while `talk` is at the other end, as Spark's JVM is."""
    (folder / "sitecustomize.py").write_text(f"{source}\nimport pyspark.worker\npyspark.worker.main = main\n")
    paths = os.pathsep.join((str(folder), str(CHECKOUT)))
    environment = os.environ | {"PYTHONPATH": paths, "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1"}
    environment["PYTHON_UNIX_DOMAIN_ENABLED"] = "true"  # without a secret
    environment["PYTHON_WORKER_FACTORY_SOCK_DIR"] = str(folder)
    command = (sys.executable, "-m", MODULE, "pyspark.worker")
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as daemon:
        assert daemon.stdin
        assert daemon.stdout
        assert daemon.stderr
        (size,) = struct.unpack("!i", daemon.stdout.read(4))
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(daemon.stdout.read(size).decode())
            connection.recv(4)  # the number of the process
            talk(connection)
        printed = daemon.stderr.read(1) if source is FAILS else b""
        # At its end, the daemon would hang up on a worker that is left.
        children = Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children")
        wait_until(lambda: not children.read_text().split(), "the end of the worker", DEADLINE_S)
        daemon.stdin.close()
        return (printed + daemon.stderr.read()).decode()


def hang_up(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_RD)
    connection.sendall(b"x")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_worker_whose_connection_is_closed_prints_nothing(tmp_path: Path) -> None:
    assert output_of_a_worker(tmp_path, WRITES, hang_up) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_another_error_of_a_worker_is_printed(tmp_path: Path) -> None:
    assert "ValueError: of a worker" in output_of_a_worker(tmp_path, FAILS, lambda _: None)
