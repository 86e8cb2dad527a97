from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest

from services.tools.launcher import leftovers, processes
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[4]


class Launch:
    """A launcher in a process of its own, with tiny parts."""

    started: ClassVar[list[Launch]] = []

    def __init__(self, data: Path, *parts: str) -> None:
        self.run = data / "run"
        self.logs = data / "logs"
        command = [sys.executable, "-m", "tests.services.tools.launcher.tiny", str(data), *parts]
        self.process = subprocess.Popen(
            command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self.started.append(self)

    def until_ready(self, part: str) -> int:
        until(lambda: part in self.pids() and "ready" in (self.logs / f"{part}.log").read_text(), f"{part} is ready")
        return self.pids()[part]

    def pids(self) -> dict[str, int]:
        return leftovers.noted(self.run)

    def child_of_parent(self) -> int:
        words = (self.logs / "parent.log").read_text().split()
        return int(words[words.index("child") + 1])

    def stop(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGINT)
        return self.end()

    def end(self) -> tuple[int, str]:
        output, _ = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, output


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, f"not so: {what}"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    return processes.identity(pid) is None


def lines(path: Path) -> list[str]:
    return [line.partition(" ")[2] for line in path.read_text().splitlines()]


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    while Launch.started:  # a failed test has not ended it
        launch = Launch.started.pop()
        if launch.process.poll() is None:
            launch.process.kill()
            launch.process.communicate()
    leftovers.stop(tmp_path / "run", 1)


def test_parts_start_in_order_and_stop_in_reverse_order(data: Path) -> None:
    launch = Launch(data, "once", "parent", "server")
    pids = [launch.until_ready("parent"), launch.until_ready("server"), launch.child_of_parent()]
    until(lambda: "server: runs" in lines(data / "logs" / "launcher.log"), "the launcher saw it")
    code, output = launch.stop()
    assert code == 0
    assert output.endswith("Stopped. The next start goes on from here.\n")
    assert all(map(gone, pids))
    assert list(launch.run.glob("*.pid")) == []
    logged = [line for line in lines(launch.logs / "launcher.log") if not line.startswith("once")]
    assert logged == [
        *("parent: starting", "parent: runs", "server: starting", "server: runs"),
        *("server: stopping", "server: stopped", "parent: stopping", "parent: stopped"),
    ]


def test_a_killed_part_is_started_again(data: Path) -> None:
    launch = Launch(data, "parent")
    before, child = launch.until_ready("parent"), launch.child_of_parent()
    os.kill(before, signal.SIGKILL)
    until(lambda: launch.pids().get("parent", before) != before, "another process")
    assert gone(child)
    assert launch.stop()[0] == 0


def test_a_stubborn_part_is_killed(data: Path) -> None:
    launch = Launch(data, "stubborn")
    pid = launch.until_ready("stubborn")
    code, output = launch.stop()
    assert code == 0
    assert "stubborn did not stop within 0.2 s, and was killed" in output
    assert gone(pid)


def test_a_process_that_refuses_to_start_stops_the_launch_with_its_line(data: Path) -> None:
    launch = Launch(data, "server", "refuses")
    code, output = launch.end()
    assert code == 1
    log = data / "logs" / "refuses.log"
    assert output.splitlines()[-1] == f"stateloop: refuses did not start: install it (see {log})"
    assert launch.pids() == {}


def test_a_process_that_keeps_dying_stops_the_launch(data: Path) -> None:
    code, output = Launch(data, "server", "dies").end()
    assert code == 1
    assert "dies ended 3 times within 60 s; its last line: I cannot" in output


def test_a_second_launcher_is_refused_in_one_line(data: Path) -> None:
    first = Launch(data, "server")
    pid = first.until_ready("server")
    code, output = Launch(data, "server").end()
    assert code == 1
    (line,) = output.splitlines()
    assert f"it is already running on the data in {data} (process {first.process.pid})" in line
    assert first.pids() == {"server": pid}
    assert first.stop()[0] == 0


def test_a_killed_launcher_leaves_nothing_behind(data: Path) -> None:
    launch = Launch(data, "parent", "server", "stubborn")
    pids = [launch.until_ready(name) for name in ("parent", "server", "stubborn")] + [launch.child_of_parent()]
    launch.process.kill()
    again = Launch(data, "server")  # waits for the watchdog of the first, which is stopping the parts
    until(lambda: again.pids().get("server", pids[1]) != pids[1], "the second launch's server")
    assert all(map(gone, pids))
    assert again.stop()[0] == 0
    launch.end()


def test_processes_that_outlive_launcher_and_watchdog_are_stopped_at_the_next_start(data: Path) -> None:
    launch = Launch(data, "parent")
    pid, child = launch.until_ready("parent"), launch.child_of_parent()
    os.kill(launch.process.pid, signal.SIGSTOP)  # so that it does not start another watchdog
    os.kill(watchdog_of(launch.run), signal.SIGKILL)
    launch.process.kill()
    launch.end()
    assert not gone(pid)
    again = Launch(data, "server")
    again.until_ready("server")
    assert gone(pid)
    assert gone(child)
    _, output = again.stop()
    assert output.startswith("Stopped what a killed run had left: parent\n")


def watchdog_of(run: Path) -> int:
    done = subprocess.run(["pgrep", "-f", f"watchdog {run}"], capture_output=True, text=True, check=True)  # noqa: S607
    return int(done.stdout)
