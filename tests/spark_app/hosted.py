"""The job, and the commands on its checkpoint, in the process of the tests: all of them share one Spark session.

A Spark that is warm starts a query in a moment; a driver of its own costs more CPU than most tests.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from itertools import count
from typing import TYPE_CHECKING
from unittest.mock import patch

from typing_extensions import override

from contracts import Application, Suite
from contracts.errors import StateloopError
from contracts.model.suite import load_suite
from contracts.settings import read
from services.tools.cli.__main__ import main
from spark_app.main import run
from spark_app.run.report import JobReport
from spark_app.settings import JobSettings
from tests.spark_app.running import PATIENCE_S, Job, started

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

numbers = count()
"""For the names of modules that are imported once more, and of checkpoints."""
CRASHED = -9
"""The exit code of a command that a test has ended in the middle."""
COMMANDS_SESSION = "services.tools.cli.spark.open_session"


class Crash(BaseException):
    """Ends a command in the middle, as far as that is possible in a process that goes on."""


class HostedJob(Job):
    """`stateloop job` but for the session.

    The application is a declaration, or a reference that is imported anew in the job's environment at each start.
    """

    def __init__(
        self,
        spark: SparkSession,
        kafka: str,
        folder: Path,
        application: Application | Suite | str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        reference = application if isinstance(application, str) else ""
        super().__init__(kafka, folder, reference, {"STATELOOP_HTTP_PORT": "0"} | dict(environment or {}))
        self._spark, self._application = spark, application
        self._stopping = threading.Event()
        self._thread = threading.Thread()
        self._exit_code = 0

    @override
    def start(self) -> HostedJob:
        started.append(self)
        with patch.dict(os.environ, self.environment):
            settings = read(JobSettings)
            suite = _suite(self._application)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(suite, settings), name="job", daemon=True)
        self._thread.start()
        return self

    @override
    def ended(self) -> bool:
        return not self._thread.is_alive()

    @override
    def wait(self) -> int:
        self._thread.join(PATIENCE_S)
        assert self.ended()
        return self._exit_code

    @override
    def stop(self) -> int:
        """Stop the job. As at every stop, the batch in progress is not committed: the next start reads it again."""
        self._stopping.set()
        return self.wait()

    @override
    def kill(self) -> None:
        self.stop()

    def lose_checkpoint(self) -> None:
        """Give the job that has stopped an empty checkpoint, in another folder.

        The session goes on: the maintenance of its state stores may still write to the folder of the one that is lost.
        """
        self.checkpoint = self.checkpoint.with_name(f"checkpoint-{next(numbers)}")
        self.environment["STATELOOP_CHECKPOINT"] = str(self.checkpoint)

    def _run(self, suite: Suite, settings: JobSettings) -> None:
        self._exit_code = 1
        with self.log.open("a", encoding="utf-8", buffering=1) as log:
            report = JobReport(log.write)
            try:
                run(suite, settings, report, self._stopping, lambda *_: nullcontext(self._spark))
            except StateloopError as error:
                report.ended(str(error), "error")
                return
            report.ended("stopped")
        self._exit_code = 0


class HostedCommand:
    """A command on a checkpoint that runs in the background, and what it prints. Only one runs at a time."""

    def __init__(self, spark: SparkSession, environment: Mapping[str, str], *arguments: str) -> None:
        self._printed = io.StringIO()
        self._exit_code: int | None = None
        self._thread = threading.Thread(
            target=self._run, args=(spark, environment, *arguments), name="command", daemon=True
        )
        self._thread.start()

    @property
    def output(self) -> str:
        """The lines so far, of both streams."""
        return self._printed.getvalue()

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        return None if self._thread.is_alive() else self._exit_code

    def wait(self) -> int:
        """Return the exit code when it has ended."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), self.output
        assert self._exit_code is not None, self.output
        return self._exit_code

    def _run(self, spark: SparkSession, environment: Mapping[str, str], name: str, *arguments: str) -> None:
        with (
            redirect_stdout(self._printed),
            redirect_stderr(self._printed),
            patch(COMMANDS_SESSION, lambda *_: nullcontext(spark)),
            anew(environment),
        ):
            try:
                self._exit_code = main([name, *arguments])
            except Crash:
                self._exit_code = CRASHED


def done(spark: SparkSession, environment: Mapping[str, str], *arguments: str, code: int = 0) -> str:
    """Run a command on a checkpoint to its end, and return what it prints."""
    command = HostedCommand(spark, environment, *arguments)
    assert command.wait() == code, command.output
    return command.output


@contextmanager
def anew(environment: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables, and import the application's module anew, which reads them: under another name."""
    with patch.dict(os.environ, environment):
        os.environ["STATELOOP_APPLICATION"] = imported_anew(environment["STATELOOP_APPLICATION"])
        yield


def imported_anew(reference: str) -> str:
    """Import the module of `package.module:name` once more. Return the reference to the new one."""
    module, _, name = reference.partition(":")
    original = find_spec(module)
    assert original is not None, module
    assert original.origin is not None, module
    own = f"{module}_{next(numbers)}"
    spec = spec_from_file_location(own, original.origin)
    assert spec is not None, module
    assert spec.loader is not None, module
    sys.modules[own] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[own])
    return f"{own}:{name}"


def _suite(application: Application | Suite | str) -> Suite:
    if isinstance(application, Application):
        return Suite(application)
    if isinstance(application, Suite):
        return application
    return load_suite(imported_anew(application))
