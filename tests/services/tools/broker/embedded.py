"""The real broker as a test has it: started as a user starts it, killed as a machine kills it."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
from pathlib import Path

from services.runtime.kafka.broker_check import answers
from services.tools.broker.readiness import wait_until
from tests.jvm import COMPILE_FAST

CHECKOUT = Path(__file__).parents[4]
READY_S = 300
"""A machine on which much else runs may need a minute to start a JVM."""
STOP_S = 300


class EmbeddedBroker:
    """A broker process with a data folder and a port, the same at each start."""

    def __init__(self, folder: Path, port: int) -> None:
        self.bootstrap = f"127.0.0.1:{port}"
        self.log = folder / "broker.log"
        self._environment = {
            "STATELOOP_BROKER_DATA": str(folder / "data"),
            "STATELOOP_BROKER_PORT": str(port),
            "JDK_JAVA_OPTIONS": COMPILE_FAST,
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the broker's JVM; it must run."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the broker, and return when it answers."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "services.tools.broker"],
                cwd=CHECKOUT,
                env=os.environ | self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        wait_until(
            lambda: self._exited() or answers(self.bootstrap, "broker"), f"broker ready, see {self.log}", READY_S
        )
        assert not self._exited(), self.log.read_text(encoding="utf-8")[-2000:]

    def kill(self) -> None:
        """Kill the broker as kill -9 does, and return when it is gone."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(STOP_S)
        self._process = None

    def stop(self) -> int | None:
        """Stop the broker as Ctrl-C does; gives its exit code, or None if it did not run."""
        if self._process is None:
            return None
        self._process.terminate()
        code = self._process.wait(STOP_S)
        self._process = None
        return code

    def detach(self) -> int:
        """Leave the broker running after this object; gives its process id."""
        assert self._process is not None
        pid, self._process.returncode = self._process.pid, 0  # Popen warns of a process that still runs
        self._process = None
        return pid

    def _exited(self) -> bool:
        return self._process is None or self._process.poll() is not None


def run_broker(**environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command of a broker that is expected to refuse to start."""
    return subprocess.run(
        [sys.executable, "-m", "services.tools.broker"],
        cwd=CHECKOUT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=READY_S,
        check=False,
    )


def free_port_pair() -> int:
    """Reserve two free ports in a row; gives the first."""
    return free_ports(2)


def free_ports(count: int) -> int:
    """Reserve this many free ports in a row, until this process ends; gives the first.

    They are below the range of outgoing connections: a client that keeps trying to reach a broker that was killed could
    otherwise get the broker's own port, and connect to itself.
    """
    firsts = range(20_000, 29_000, count)
    shuffled = random.sample(firsts, len(firsts))
    return next(first for first in shuffled if all(reserve_port(first + offset) for offset in range(count)))


def reserve_port(port: int) -> bool:
    """Whether the TCP port is free and no other test has it: the UDP port of this number is the lock."""
    with socket.socket() as probe, socket.socket(type=socket.SOCK_DGRAM) as lock:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            return False
        try:
            lock.bind(("127.0.0.1", port))
        except OSError:
            return False
        lock.detach()  # the descriptor stays open, and the port reserved, until this process ends
        return True
