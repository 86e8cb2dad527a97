"""Processes of the services, forked from one that has imported what they need: importing takes seconds of CPU each.

A test can kill or suspend them. `tests/services/test_settings.py` and the tests of the launcher start services as users
do.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from multiprocessing import connection, get_context
from typing import TYPE_CHECKING

from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

STDOUT, STDERR = 1, 2
LOG_TAIL = 5000
"""The number of characters of a log in the output of a failed test."""
_FORKING = get_context("forkserver")
_FORKING.set_forkserver_preload(
    [
        "services.derive.service",
        "services.enrichment.service",
        "services.query.service",
        "services.runtime.command_line",
        "services.sink.service",
        "services.tools.topics.rewrite",
    ]
)
_LOCK = threading.Lock()
"""The exit code of a process can be read once from its pipe. The start of another process reads it, too."""


class Forked:
    """A call in a process of its own, with this environment and a file that its output is appended to."""

    def __init__(self, environment: Mapping[str, str], log: Path, call: Callable[..., object], *arguments: str) -> None:
        log.touch()
        self._process = _FORKING.Process(target=_call, args=(dict(environment), log, call, arguments), daemon=True)
        with _LOCK:
            self._process.start()

    @classmethod
    def module(cls, name: str, environment: Mapping[str, str], log: Path, *arguments: str) -> Forked:
        """Run a module as `python -m` does."""
        return cls(environment, log, _run, name, *arguments)

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit code, or the negative number of the signal that killed it; None while it runs."""
        with _LOCK:
            return self._process.exitcode

    def wait(self, timeout_s: float | None = None) -> int:
        """Return the exit code when it has ended. Raises AssertionError if it still runs."""
        connection.wait([self._process.sentinel], timeout_s)
        code = self.poll()
        assert code is not None, f"{self.pid} runs after {timeout_s} s"
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


@contextmanager
def running(name: str, environment: Mapping[str, str], log: Path, *arguments: str) -> Iterator[Forked]:
    """Run a module, and kill it at the end if it still runs. An error inside gets a note with the end of its log."""
    process = Forked.module(name, environment, log, *arguments)
    try:
        yield process
    except Exception as error:
        error.add_note(f"{log.name}, exit code {process.poll()}:\n{log.read_text('utf-8')[-LOG_TAIL:]}")
        raise
    finally:
        process.kill()
        process.wait(DEADLINE_S)


def _call(environment: Mapping[str, str], log: Path, call: Callable[..., object], arguments: tuple[str, ...]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    with log.open("ab") as file:
        os.dup2(file.fileno(), STDOUT)
        os.dup2(file.fileno(), STDERR)
    call(*arguments)


def _run(module: str, *arguments: str) -> None:
    sys.argv[:] = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
