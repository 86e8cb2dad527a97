"""Starts the processes in order, restarts those that die, and stops all in reverse order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from services.tools.launcher.errors import RestartLimitError, StartFailedError, StartTimeoutError
from services.tools.launcher.restarts import Restarts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from services.tools.launcher.process_spec import ProcessSpec

POLL_S = 0.1


class RunningProcess(Protocol):
    """The interface of a process; services.tools.launcher.child implements it."""

    def exit_code(self) -> int | None:
        """Return its exit code, negative for a signal; None while it runs."""
        ...

    def output(self) -> str:
        """Return the beginning of its output."""
        ...

    def last_error(self) -> str:
        """Return the line of its output that explains why it exited."""
        ...

    def stop(self) -> bool:
        """Stop it; return whether it exited by itself."""
        ...

    def clear(self) -> None:
        """Kill what is left of its group."""
        ...


class Notices(Protocol):
    """Receives the state changes of the processes."""

    def starting(self, part: ProcessSpec) -> None:
        """The process starts for the first time."""
        ...

    def ready(self, part: ProcessSpec, after_s: float) -> None:
        """The process is ready: the next one may start."""
        ...

    def died(self, part: ProcessSpec, why: str, pause_s: float) -> None:
        """The process exited, and restarts after a pause."""
        ...

    def refused(self, part: ProcessSpec, why: str, pause_s: float) -> None:
        """The system does not start the process again; the next try is after each pause."""
        ...

    def again(self, part: ProcessSpec) -> None:
        """The process was restarted."""
        ...

    def done(self, part: ProcessSpec) -> None:
        """The process has finished its work."""
        ...

    def stopping(self, part: ProcessSpec) -> None:
        """The process receives SIGTERM."""
        ...

    def stopped(self, part: ProcessSpec, *, by_itself: bool) -> None:
        """The process has exited, by itself or killed."""
        ...


class Supervised:
    """One specification and its process, if it has one now."""

    def __init__(self, part: ProcessSpec, start: Callable[[ProcessSpec], RunningProcess], now: float) -> None:
        self.part = part
        self._start = start
        self.process: RunningProcess | None = start(part)
        self.since = now
        self.restarts = Restarts(part.restart)
        self.ready = False
        self.done = False
        self.start_at = 0.0
        self.is_refused = False

    def is_ready(self) -> bool:
        """Return whether the next process may start; once true, it stays true."""
        self.ready = self.ready or (self.process is not None and self.part.ready.is_ready(self.process))
        return self.ready

    def start_again(self) -> None:
        """Start a new process, after the old one was cleared. Raises StartFailedError."""
        self.process = self._start(self.part)


class Supervisor:
    """Runs the processes until a stop. `pause` waits for seconds, and returns whether to stop."""

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
        """Start each process when the one before is ready; return False after a stop. Raises LaunchError."""
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
        """Restart processes until a stop, or until the foreground one finishes. Raises RestartLimitError."""
        while not any(run.part.foreground and run.done for run in self._runs):
            self._look()
            if self._pause(POLL_S):
                return

    def stop(self) -> None:
        """Stop all processes, the last one first."""
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
        if self._clock() < run.start_at:
            return
        try:
            run.start_again()
        except StartFailedError as error:
            self._refused(run, error.why)
        else:
            run.is_refused = False
            self._notices.again(run.part)

    def _refused(self, run: Supervised, why: str) -> None:
        """Set the time of the next try. It is no death: the system may be without space for minutes."""
        pause_s = run.part.restart.longest_pause_s
        run.start_at = self._clock() + pause_s
        if not run.is_refused:
            self._notices.refused(run.part, why, pause_s)
        run.is_refused = True

    def _ended(self, run: Supervised, process: RunningProcess, code: int) -> None:
        if code == 0 and run.part.finishes:
            run.is_ready()
            run.done = True
            process.clear()
            self._notices.done(run.part)
            return
        why = process.last_error()
        if code > 0 and not run.ready:  # it would exit again; after a signal it may not
            raise StartFailedError(run.part.name, why, self._log(run.part))
        process.clear()
        run.process = None
        self._died(run, why)

    def _died(self, run: Supervised, why: str) -> None:
        """Set the time of the restart. Raises RestartLimitError."""
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
