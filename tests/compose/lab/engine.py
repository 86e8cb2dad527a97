"""The Docker engine that the test runs on: the one that is there, or one of its own that lasts as long as the test.

An engine of its own is two daemons after each other on the same data. The first builds: it runs in the machine's
network, which it leaves as it is, so that only builds on the host's network have any. The second runs the stack: it
has a network namespace to itself, so bridges, published ports and address translation are its own.
"""

from __future__ import annotations

import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from tests.compose.lab.commands import Commands, has
from tests.compose.lab.errors import NoEngineError
from tests.compose.lab.packages import install

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

START_S = 60.0
STOP_S = 60.0
LOOK_S = 0.2
TAIL = 1_500
NO_NETWORK = ("--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false")
ALONE = ("unshare", "--mount", "--propagation", "private")
OWN_NETWORK = (
    *ALONE,
    "--net",
    "sh",
    "-c",
    'ip link set lo up; exec "$@"',
    "sh",
)


class Engine(Protocol):
    """An engine that runs containers."""

    own: bool
    """Whether it was started for the test: then builds need the host's network, and nothing is left behind."""
    environment: dict[str, str]
    """The variables by which clients find the engine."""

    def building(self) -> AbstractContextManager[None]:
        """Have it build images."""
        ...

    def running(self) -> AbstractContextManager[None]:
        """Have it run containers."""
        ...

    def inside(self) -> tuple[str, ...]:
        """Return the prefix of a command that must reach published ports."""
        ...


def find(folder: Path, log: Path) -> Engine:
    """Give the engine that answers here, else one of its own with its data in `folder`. Raises NoEngineError."""
    present = Commands(log, {})
    if answers(present):
        return Present()
    installed = install(present, ("dockerd", "docker", "iptables", "ip"))
    if installed and answers(present):  # where a service manager has started it
        return Present()
    if not has("unshare") or not has("nsenter"):
        raise NoEngineError("unshare and nsenter (of util-linux) are not there")
    return Own(folder, log)


def answers(commands: Commands) -> bool:
    """Whether an engine answers."""
    return has("docker") and commands.succeeds("docker", "info", "--format={{.ServerVersion}}", patience_s=20)


class Present:
    """An engine that already runs."""

    own = False

    def __init__(self) -> None:
        self.environment: dict[str, str] = {}

    @contextmanager
    def building(self) -> Iterator[None]:
        """It does so anyway."""
        yield

    @contextmanager
    def running(self) -> Iterator[None]:
        """It does so anyway."""
        yield

    def inside(self) -> tuple[str, ...]:
        """Its published ports are this machine's."""
        return ()


class Own:
    """An engine that is started here, and stopped by its process id whatever happens."""

    own = True

    def __init__(self, folder: Path, log: Path) -> None:
        self.environment = {"DOCKER_HOST": f"unix://{folder / 'docker.sock'}"}
        self._folder = folder
        self._pid_file = folder / "docker.pid"
        self._log = folder / "dockerd.log"
        self._commands = Commands(log, self.environment)
        (folder / "daemon.json").write_text("{}", encoding="utf-8")

    def building(self) -> AbstractContextManager[None]:
        """Run the daemon that builds."""
        return self._daemon(ALONE, NO_NETWORK)

    def running(self) -> AbstractContextManager[None]:
        """Run the daemon that runs the stack."""
        return self._daemon(OWN_NETWORK, ())

    def inside(self) -> tuple[str, ...]:
        """Its ports are published in its own namespace."""
        return "nsenter", "--net", "--target", self._pid_file.read_text(encoding="utf-8").strip()

    @contextmanager
    def _daemon(self, namespaces: tuple[str, ...], options: tuple[str, ...]) -> Iterator[None]:
        # Should this process be killed, the daemon is stopped all the same.
        command = ["setpriv", "--pdeathsig", "TERM", *namespaces, "dockerd", *self._options(), *options]
        with self._log.open("ab") as log:
            daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            self._await_answer(daemon)
            yield
        finally:
            self._stop(daemon)

    def _options(self) -> list[str]:
        folder = self._folder
        return [
            f"--config-file={folder / 'daemon.json'}",
            f"--data-root={folder / 'data'}",
            f"--exec-root={folder / 'run'}",
            f"--pidfile={self._pid_file}",
            f"--host={self.environment['DOCKER_HOST']}",
            "--group=root",
            "--storage-driver=overlay2",
            "--oom-score-adjust=0",
        ]

    def _await_answer(self, daemon: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_S
        while not answers(self._commands):
            if daemon.poll() is not None or time.monotonic() > deadline:
                state = "does not answer" if daemon.poll() is None else f"ended with {daemon.returncode}"
                tail = self._log.read_text(encoding="utf-8", errors="replace")[-TAIL:]
                raise NoEngineError(f"dockerd {state}, and its log ends with:\n{tail}\n")
            time.sleep(LOOK_S)

    def _stop(self, daemon: subprocess.Popen[bytes]) -> None:
        daemon.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            daemon.wait(STOP_S)
            return
        daemon.kill()
        daemon.wait()
        raise NoEngineError(
            f"dockerd did not stop within {STOP_S:.0f} s and was killed: look for containers that still run"
        )
