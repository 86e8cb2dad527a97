"""Starts the parts in order, keeps them running, and stops them in reverse order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from services.launcher.errors import RestartLimitError, StartFailedError, StartTimeoutError
from services.launcher.restarts import Restarts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from services.launcher.process_spec import ProcessSpec

POLL_S = 0.1


class RunningProcess(Protocol):
    """What the supervisor does with a process; services.launcher.child is the real one."""

    def exit_code(self) -> int | None:
        """How it ended, negative for a signal; None while it runs."""
        ...

    def output(self) -> str:
        """The beginning of what it wrote."""
        ...

    def last_error(self) -> str:
        """The line that says best why it ended."""
        ...

    def stop(self) -> bool:
        """Stop it; whether it did so by itself."""
        ...

    def clear(self) -> None:
        """Remove what is left of it."""
        ...


class Notices(Protocol):
    """Is told of what happens to the parts."""

    def starting(self, part: ProcessSpec) -> None:
        """It is started for the first time, and waited for."""
        ...

    def ready(self, part: ProcessSpec, after_s: float) -> None:
        """The next part may start."""
        ...

    def died(self, part: ProcessSpec, why: str, pause_s: float) -> None:
        """It ended, and starts again after a pause."""
        ...

    def again(self, part: ProcessSpec) -> None:
        """It was started again."""
        ...

    def done(self, part: ProcessSpec) -> None:
        """It has finished what it had to do."""
        ...

    def stopping(self, part: ProcessSpec) -> None:
        """It is told to stop."""
        ...

    def stopped(self, part: ProcessSpec, *, by_itself: bool) -> None:
        """It is gone; by itself, or killed."""
        ...


class Supervised:
    """One part and its process, if it has one now."""

    def __init__(self, part: ProcessSpec, start: Callable[[ProcessSpec], RunningProcess], now: float) -> None:
        self.part = part
        self._start = start
        self.process: RunningProcess | None = start(part)
        self.since = now
        self.restarts = Restarts(part.restart)
        self.ready = False
        self.done = False
        self.start_at = 0.0

    def is_ready(self) -> bool:
        """Whether those that come after it may start; once true, it stays so."""
        self.ready = self.ready or (self.process is not None and self.part.ready.is_ready(self.process))
        return self.ready

    def start_again(self) -> None:
        """A new process, after the old one was cleared away."""
        self.process = self._start(self.part)


class Supervisor:
    """Runs the parts until told to stop. `pause` waits so many seconds, and says whether to stop."""

    def __init__(  # noqa: PLR0913  # the seams of its tests: everything that is not a decision
        self,
        parts: Sequence[ProcessSpec],
        start: Callable[[ProcessSpec], RunningProcess],
        notices: Notices,
        logs: Path,
        *,
        clock: Callable[[], float],
        pause: Callable[[float], bool],
    ) -> None:
        self._parts = parts
        self._start = start
        self._notices = notices
        self._logs = logs
        self._clock = clock
        self._pause = pause
        self._runs: list[Supervised] = []

    def start(self) -> bool:
        """Start each part when the one before it is ready; False when told to stop meanwhile. Raises LaunchError."""
        for part in self._parts:
            self._notices.starting(part)
            run = Supervised(part, self._start, self._clock())
            self._runs.append(run)
            while not run.is_ready():
                self._look()
                if self._clock() - run.since > part.patience_s:
                    raise StartTimeoutError(part.name, part.patience_s, self._why(run), self._log(part))
                if self._pause(POLL_S):
                    return False
            self._notices.ready(part, self._clock() - run.since)
        return True

    def watch(self) -> None:
        """Keep all parts running until told to stop, or a foreground part finishes. Raises RestartLimitError."""
        while not any(run.part.foreground and run.done for run in self._runs):
            self._look()
            if self._pause(POLL_S):
                return

    def stop(self) -> None:
        """Stop all parts, the last one first."""
        for run in reversed(self._runs):
            if run.process is not None and not run.done:
                self._notices.stopping(run.part)
                self._notices.stopped(run.part, by_itself=run.process.stop())
            run.process = None

    def _look(self) -> None:
        for run in self._runs:
            if run.done:
                continue
            if run.process is None:
                self._start_if_due(run)
            elif (code := run.process.exit_code()) is not None:
                self._ended(run, run.process, code)

    def _start_if_due(self, run: Supervised) -> None:
        if self._clock() >= run.start_at:
            run.start_again()
            self._notices.again(run.part)

    def _ended(self, run: Supervised, process: RunningProcess, code: int) -> None:
        if code == 0 and run.part.finishes:
            run.is_ready()
            run.done = True
            process.clear()
            self._notices.done(run.part)
            return
        why = process.last_error()
        if code > 0 and not run.ready:  # it ended on purpose, and would again; a signal is no purpose of its own
            raise StartFailedError(run.part.name, why, self._log(run.part))
        process.clear()
        run.process = None
        pause_s = run.restarts.died(self._clock())
        if pause_s is None:
            policy = run.part.restart
            raise RestartLimitError(run.part.name, policy.most + 1, policy.within_s, why, self._log(run.part))
        run.start_at = self._clock() + pause_s
        self._notices.died(run.part, why, pause_s)

    def _why(self, run: Supervised) -> str:
        return run.process.last_error() if run.process else ""

    def _log(self, part: ProcessSpec) -> Path:
        return self._logs / f"{part.name}.log"
