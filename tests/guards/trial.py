"""Runs tests on a copy of the tree, from which one guard at a time is taken out."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree as ET

from tests.deadline import VARIABLE as TEST_DEADLINE_S
from tests.guards.guard import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.guards.guard import Guard

PYTEST = [sys.executable, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider"]
DEADLINE_S, WAIT_S = 300, 40
"""The deadline of a run without a guard, after which it hangs, and of each wait in its tests, which fails them."""
BROKEN = ("ImportError", "ModuleNotFoundError", "NameError", "SyntaxError", "UnboundLocalError")
"""Errors of code that does not run without the guard, which prove nothing about it."""


class Verdict(StrEnum):
    """What a run of tests has shown."""

    PASSED = "SURVIVED"
    FAILED = "defended"
    BROKEN = "BROKEN"
    """No test failed by itself: the code does not run, or a fixture failed."""
    HUNG = "HUNG"


class Outcome(NamedTuple):
    """The verdict of a run, and its failed tests with the first lines of their errors."""

    verdict: Verdict
    failures: list[str]


class Checkout:
    """A copy of the tree, with the environment and the jars of the tree itself."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = os.environ | {"PYTHONPATH": str(folder)}
        command = [shutil.which("git") or "git", "ls-files", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines():
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        (folder / ".stateloop").mkdir()
        for name in (".venv", ".stateloop/jars"):
            (folder / name).symlink_to((ROOT / name).resolve())

    def run(self, tests: Sequence[str], *options: str, deadline_s: float | None = None, **environment: str) -> Outcome:
        """Run tests one after the other."""
        report = self._folder / "report.xml"
        report.unlink(missing_ok=True)
        with (self._folder / "output.txt").open("w") as output:
            process = subprocess.Popen(
                [*PYTEST, f"--junitxml={report}", *options, *tests],
                cwd=self._folder,
                env=self._environment | environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            status = process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return Outcome(Verdict.HUNG, [])
        return _outcome(status, report)

    def run_without(self, guard: Guard) -> Outcome:
        """Run the tests of a guard that is taken out, up to the first failure, and put it back."""
        path = self._folder / guard.file
        path.write_text(guard.taken_out(path.read_text()))
        try:
            environment = {TEST_DEADLINE_S: str(WAIT_S), "HYPOTHESIS_PROFILE": "guards"}
            return self.run(guard.tests, "-x", deadline_s=DEADLINE_S, **environment)
        finally:
            shutil.copy2(ROOT / guard.file, path)  # with its first time, by which Python knows its compiled module


def _outcome(status: int, report: Path) -> Outcome:
    """Return the outcome by pytest's exit status and its report, in which a failed fixture is an error."""
    if status == 0 or not report.exists():
        return Outcome(Verdict.BROKEN if status else Verdict.PASSED, [])
    cases = list(ET.parse(report).iter("testcase"))  # noqa: S314 - pytest wrote it
    failures, errors = ([(case, found) for case in cases for found in case.findall(k)] for k in ("failure", "error"))
    is_broken = errors or not failures or any(found.get("message", "").startswith(BROKEN) for _, found in failures)
    lines = [
        f"{case.get('name')}: {found.get('message', '').partition(chr(10))[0]}" for case, found in failures + errors
    ]
    return Outcome(Verdict.BROKEN if is_broken else Verdict.FAILED, lines)
