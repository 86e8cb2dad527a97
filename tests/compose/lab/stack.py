"""The stack of compose.yaml as a project of its own: its containers, how they die, and how they come back."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.compose.lab.errors import StackError
from tests.spark_app.running import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.compose.lab.commands import Commands

PROJECT = "stateloop-test"
COMPOSE = str(Path(sys.executable).with_name("docker-compose"))
CHECKPOINT = "/var/lib/stateloop/checkpoint/flights"
"""The checkpoint of the flights: each application of the suite has one of its own."""
COMMITS = f"cd {CHECKPOINT} && ls $(ls -d commits generation-*/commits 2>/dev/null | sort | tail -n 1)"
"""Lists the commits of the newest generation: a rebuild makes one in a folder of its own."""
BACK_S = 180.0


class Stack:
    """A checkout's compose.yaml with further files on top, on one engine."""

    def __init__(self, commands: Commands, checkout: Path, layers: tuple[str, ...]) -> None:
        self.commands = commands
        self.checkout = checkout
        files = ("compose.yaml", *layers)
        self._compose = (COMPOSE, f"--project-name={PROJECT}", *(f"--file={checkout / file}" for file in files))

    def compose(self, *arguments: str) -> str:
        """Run docker compose; gives what it printed."""
        return self.commands.run(*self._compose, *arguments, cwd=self.checkout)

    def containers(self, service: str) -> list[dict[str, Any]]:
        """The state of a service's containers, running or not, as the engine reports it."""
        ids = self.compose("ps", "--all", "--quiet", service).split()
        found: list[dict[str, Any]] = json.loads(self.commands.run("docker", "inspect", *ids)) if ids else []
        return found

    def container(self, service: str, of: int = 1) -> dict[str, Any]:
        """The first container of a service that has so many."""
        found = self.containers(service)
        if len(found) != of:
            raise StackError(f"{service} has {len(found)} containers, not {of}")
        return min(found, key=lambda container: str(container["Name"]))

    def up(self, *options: str) -> None:
        """Bring it up, of the images that there are."""
        self.compose("up", "--detach", "--no-build", *options)

    def remove(self) -> None:
        """Take it down with its volumes, and see that none is left."""
        self.compose("down", "--volumes", "--remove-orphans", "--timeout=20")
        left = self.commands.run("docker", "volume", "ls", "--quiet", f"--filter=name={PROJECT}_").split()
        if left:
            raise StackError(f"volumes are left: {', '.join(left)}")

    def crash(self, service: str, of: int = 1) -> None:
        """Kill a container's processes behind the engine's back, as a crash does; return when it is back."""
        before = self.container(service, of)
        pid = int(before["State"]["Pid"])
        if pid == 0:  # to kill process 0 is to kill this process group
            raise StackError(f"{service} cannot crash, for it does not run: {before['State']['Status']}")
        if str(before["Id"]) not in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8"):
            raise StackError(
                f"{service} is no process of this machine: the engine is on another machine, and this cannot crash it"
            )
        os.kill(pid, signal.SIGKILL)
        self.await_restart(service, before["RestartCount"], of)

    def await_restart(self, service: str, restarts: int, of: int = 1) -> None:
        """Wait until the engine has started a container again, after so many restarts, and it is well."""

        def back() -> bool:
            now = self.container(service, of)
            return bool(now["RestartCount"] > restarts and well(now))

        self.wait(back, f"{service} is back after its end")

    def usage(self) -> list[str]:
        """The memory of each container now, and its limit."""
        ids = self.compose("ps", "--quiet").split()
        listed = self.commands.run("docker", "stats", "--no-stream", "--format={{.Name}} {{.MemUsage}}", *ids)
        return sorted(line.removeprefix(f"{PROJECT}-") for line in listed.splitlines())

    def await_well(self, *services: str) -> None:
        """Wait until all containers of these services run, and are healthy if they have a health check."""

        def all_well() -> bool:
            found = [container for service in services for container in self.containers(service)]
            return len(found) >= len(services) and all(well(container) for container in found)

        self.wait(all_well, f"{', '.join(services)} are well")

    def wait(self, condition: Callable[[], Any], what: str) -> None:
        """Wait for a condition. Raises StackError."""
        try:
            until(condition, what, BACK_S)
        except AssertionError as error:
            raise StackError(str(error)) from error

    def batches(self) -> int:
        """The number of the last batch that the job has committed."""
        listed = self.compose("exec", "-T", "job", "sh", "-c", COMMITS).split()
        return max((int(name) for name in listed if name.isdecimal()), default=-1)

    def output(self, container: str) -> str:
        """Return the standard output and error of a container."""
        return self.commands.run("docker", "logs", container, errors_too=True)

    def logs(self) -> None:
        """Have the containers' last lines in the log."""
        self.compose("logs", "--no-color", "--tail=200")


def well(container: dict[str, Any]) -> bool:
    """Whether a container runs, and is healthy if it has a check."""
    state = container["State"]
    return bool(state["Running"] and state.get("Health", {"Status": "healthy"})["Status"] == "healthy")
