from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.compose.lab import stack as module
from tests.compose.lab.commands import Commands
from tests.compose.lab.errors import StackError
from tests.compose.lab.layers import calls
from tests.compose.lab.stack import Stack, well


class ScriptedStack(Stack):
    """A stack whose containers have the states that a test gives, one after the other."""

    def __init__(self, folder: Path, *states: dict[str, Any]) -> None:
        super().__init__(Commands(folder / "log", {}), folder, ())
        self._states = list(states)
        self.id = Path("/proc/self/cgroup").read_text(encoding="utf-8").strip()[-1:]  # of a process that a test starts

    def containers(self, service: str) -> list[dict[str, Any]]:
        """The next state; the last one for ever."""
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        return [{"Name": service, "Id": self.id, "RestartCount": state.pop("restarts", 0), "State": state}]


def test_a_container_that_does_not_run_is_not_killed(tmp_path: Path) -> None:
    stack = ScriptedStack(tmp_path, {"Pid": 0, "Running": False, "Status": "exited"})
    with pytest.raises(StackError, match="it does not run: exited"):
        stack.crash("replay")


def test_a_process_that_belongs_to_no_container_of_here_is_not_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        stack = ScriptedStack(tmp_path, {"Pid": process.pid, "Running": True})
        stack.id = "f00f"
        with pytest.raises(StackError, match="the engine is on another machine"):
            stack.crash("job")
        assert process.poll() is None


def test_a_crash_is_over_when_the_container_was_started_again_and_is_well(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        again = {"Pid": 1, "Running": True, "restarts": 1}
        stack = ScriptedStack(
            tmp_path, {"Pid": process.pid, "Running": True}, again | {"Health": {"Status": "starting"}}, again
        )
        stack.crash("job")
    assert process.returncode == -signal.SIGKILL


def test_a_container_that_stays_away_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BACK_S", 0.3)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        stack = ScriptedStack(
            tmp_path, {"Pid": process.pid, "Running": True}, {"Pid": 0, "Running": False, "restarts": 9}
        )
        with pytest.raises(StackError, match="job is back after its end"):
            stack.crash("job")


@pytest.mark.parametrize(
    ("state", "is_well"),
    [
        ({"Running": True}, True),
        ({"Running": False}, False),
        ({"Running": True, "Health": {"Status": "healthy"}}, True),
        ({"Running": True, "Health": {"Status": "unhealthy"}}, False),
    ],
)
def test_a_container_is_well_if_it_runs_and_is_healthy(state: dict[str, Any], *, is_well: bool) -> None:
    assert well({"State": state}) is is_well


def test_calls_are_those_of_the_last_line_of_figures() -> None:
    lines = [json.dumps({"event": "stats", "calls": {"result": count, "absence": 1}}) for count in (1, 5)]
    assert calls("\n".join(["started", *lines, "stopped"])) == 6
    assert calls("started") == 0


@pytest.mark.parametrize(
    ("commits", "last"),
    [
        (["commits/3", "commits/12", "commits/.12.crc"], 12),
        (["commits/12", "generation-1/commits/0", "generation-2/commits/4"], 4),
        (["metadata"], -1),
    ],
    ids=["the first generation", "the newest one", "none"],
)
def test_batches_are_those_of_the_newest_generation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits: list[str], last: int
) -> None:
    for name in commits:
        (tmp_path / "checkpoint" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "checkpoint" / name).touch()
    monkeypatch.setattr(module, "COMMITS", module.COMMITS.replace(module.CHECKPOINT, str(tmp_path / "checkpoint")))

    class LocalStack(ScriptedStack):
        def compose(self, *arguments: str) -> str:
            """Run here what would run in the container."""
            return self.commands.run(*arguments[arguments.index("sh") :])

    assert LocalStack(tmp_path, {}).batches() == last
