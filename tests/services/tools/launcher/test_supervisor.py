from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from services.tools.launcher.errors import RestartLimitError, StartFailedError, StartTimeoutError
from services.tools.launcher.process_spec import ProcessSpec
from services.tools.launcher.readiness import Finished, OutputHas, Runs
from services.tools.launcher.restarts import RestartPolicy
from services.tools.launcher.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable

POLICY = RestartPolicy(most=2, within_s=60, first_pause_s=1)


class FakeProcess:
    """A process that the test ends."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.code: int | None = None
        self.printed = ""

    def exit_code(self) -> int | None:
        return self.code

    def output(self) -> str:
        return self.printed

    def last_error(self) -> str:
        return self.printed

    def stop(self) -> bool:
        self.world.notices.append(f"stop {self.name}")
        return True

    def clear(self) -> None:
        self.world.notices.append(f"clear {self.name}")


class FakeNotices:
    """Writes down what it gets."""

    def __init__(self, notices: list[str]) -> None:
        self.notices = notices

    def starting(self, part: ProcessSpec) -> None: ...

    def ready(self, part: ProcessSpec, after_s: float) -> None:
        self.notices.append(f"ready {part.name} after {after_s:g}")

    def died(self, part: ProcessSpec, why: str, pause_s: float) -> None:
        self.notices.append(f"died {part.name} ({why}), {pause_s:g}")

    def refused(self, part: ProcessSpec, why: str, pause_s: float) -> None:
        self.notices.append(f"refused {part.name} ({why}), {pause_s:g}")

    def again(self, part: ProcessSpec) -> None: ...

    def done(self, part: ProcessSpec) -> None:
        self.notices.append(f"done {part.name}")

    def stopping(self, part: ProcessSpec) -> None: ...

    def stopped(self, part: ProcessSpec, *, by_itself: bool) -> None: ...


class World:
    """Fake processes, a clock that only pauses move, and what happens at which second."""

    def __init__(self, *parts: ProcessSpec) -> None:
        self.notices: list[str] = []
        self.now = 0.0
        self.plan: dict[float, Callable[[], object]] = {}
        self.processes: dict[str, list[FakeProcess]] = {}
        self.stopping = False
        self.is_full = False
        notices, logs = FakeNotices(self.notices), Path("logs")
        self.supervisor = Supervisor(parts, self.start, notices, logs, clock=lambda: self.now, pause=self.pause)

    def start(self, part: ProcessSpec) -> FakeProcess:
        self.notices.append(f"start {part.name}")
        if self.is_full:
            raise StartFailedError(part.name, "disk full", Path(part.name))
        process = FakeProcess(self, part.name)
        self.processes.setdefault(part.name, []).append(process)
        return process

    def pause(self, seconds: float) -> bool:
        self.now = round(self.now + seconds, 3)
        self.plan.pop(self.now, lambda: None)()
        assert self.now < 1000
        return self.stopping

    def at(self, second: float, action: Callable[[], object]) -> None:
        self.plan[second] = action

    def end(self, name: str, code: int, printed: str = "") -> None:
        self.processes[name][-1].code = code
        self.processes[name][-1].printed = printed

    def write(self, name: str, printed: str) -> None:
        self.processes[name][-1].printed = printed

    def fill(self, *, is_full: bool) -> None:
        """Let no process start while the disk is full."""
        self.is_full = is_full

    def stop(self) -> None:
        self.stopping = True


def part(name: str, **own: object) -> ProcessSpec:
    facts: dict[str, object] = {"does": "", "command": (), "ready": Runs(), "restart": POLICY}
    return ProcessSpec(name, **(facts | own))  # type: ignore[arg-type]  # a test's shorthand


def test_each_part_waits_for_the_one_before() -> None:
    world = World(part("broker", ready=OutputHas("up")), part("topics", ready=Finished(), finishes=True), part("job"))
    world.at(2, lambda: world.write("broker", "up"))
    world.at(3, lambda: world.end("topics", 0))
    assert world.supervisor.start()
    assert [line for line in world.notices if line.startswith(("start", "ready"))] == [
        *("start broker", "ready broker after 2", "start topics", "ready topics after 1"),
        *("start job", "ready job after 0"),
    ]


def test_stop_is_in_reverse_order_without_finished_processes() -> None:
    world = World(part("broker"), part("topics", ready=Finished(), finishes=True), part("job"))
    world.at(1, lambda: world.end("topics", 0))
    world.at(5, world.stop)
    world.supervisor.start()
    world.supervisor.watch()
    world.supervisor.stop()
    assert "done topics" in world.notices
    assert world.notices[-2:] == ["stop job", "stop broker"]


def test_a_stop_during_the_start_starts_no_more() -> None:
    world = World(part("broker", ready=OutputHas("up")), part("job"))
    world.at(1, world.stop)
    assert not world.supervisor.start()
    world.supervisor.stop()
    assert world.notices == ["start broker", "stop broker"]


def test_a_part_that_dies_starts_again_after_a_pause_that_grows() -> None:
    world = World(part("job"))
    world.at(1, lambda: world.end("job", -9, "killed"))
    world.at(5, lambda: world.end("job", 1, "failed"))
    world.at(9, world.stop)
    world.supervisor.start()
    world.supervisor.watch()
    assert world.notices[2:] == [
        *("clear job", "died job (killed), 1", "start job"),
        *("clear job", "died job (failed), 2", "start job"),
    ]


def test_a_part_that_the_system_cannot_start_again_is_tried_until_it_can() -> None:
    """With one notice each time, however often it is tried: a disk may be full for minutes."""
    world = World(part("job"))
    for second in (1, 701):
        world.at(second, lambda: world.end("job", -9, "killed"))
        world.at(second + 0.5, lambda: world.fill(is_full=True))
        world.at(second + 120, lambda: world.fill(is_full=False))
    world.at(900, world.stop)
    world.supervisor.start()
    world.supervisor.watch()
    tried = ["refused job (disk full), 8", *15 * ["start job"]]
    assert world.notices[2:] == 2 * ["clear job", "died job (killed), 1", "start job", *tried]


def test_a_part_dies_while_a_later_one_is_waited_for() -> None:
    world = World(part("broker"), part("job", ready=OutputHas("started")))
    world.at(1, lambda: world.end("broker", -9))
    world.at(4, lambda: world.write("job", "started"))
    assert world.supervisor.start()
    assert world.notices.count("start broker") == 2


def test_a_part_that_keeps_dying_is_the_end() -> None:
    world = World(part("job"))
    for second in (5, 10, 15):
        world.at(second, lambda: world.end("job", 1, "no room"))
    world.supervisor.start()
    with pytest.raises(RestartLimitError, match=r"job ended 3 times within 60 s; its last line: no room"):
        world.supervisor.watch()


def test_a_process_that_exits_before_it_is_ready_stops_the_launch() -> None:
    world = World(part("broker", ready=OutputHas("up")))
    world.at(1, lambda: world.end("broker", 1, "Java is missing: install it with: x"))
    with pytest.raises(StartFailedError, match="broker did not start: Java is missing: install it with: x"):
        world.supervisor.start()


def test_a_part_that_is_killed_before_it_is_ready_starts_again() -> None:
    world = World(part("broker", ready=OutputHas("up")))
    world.at(1, lambda: world.end("broker", -9))
    world.at(4, lambda: world.write("broker", "up"))
    assert world.supervisor.start()


def test_a_part_that_is_never_ready_is_the_end() -> None:
    world = World(part("job", ready=OutputHas("started"), patience_s=30))
    with pytest.raises(StartTimeoutError, match="job was not ready after 30 s"):
        world.supervisor.start()


def test_a_foreground_process_that_finishes_stops_the_watch() -> None:
    world = World(part("job"), part("live", foreground=True, finishes=True))
    world.at(5, lambda: world.end("live", 0))
    world.supervisor.start()
    world.supervisor.watch()
    world.supervisor.stop()
    assert world.notices[-2:] == ["done live", "stop job"]


def test_a_finished_replay_is_not_started_again() -> None:
    world = World(part("replay", finishes=True))
    world.at(5, lambda: world.end("replay", 0))
    world.at(500, world.stop)
    world.supervisor.start()
    world.supervisor.watch()
    assert world.notices.count("start replay") == 1
