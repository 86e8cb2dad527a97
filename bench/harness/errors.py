"""Errors that end a run or the whole benchmark. Each message has the remedy."""

import shutil
from collections.abc import Iterable
from pathlib import Path

PACKAGES = {"wrk": "wrk", "redis-server": "redis-server", "redis-benchmark": "redis-tools"}
"""The Debian package of each program that a measure needs."""


class BenchError(Exception):
    """The base of the harness's errors."""


class BrokerExitedError(BenchError):
    """The embedded broker did not start, or died."""

    def __init__(self, log: Path, last: str) -> None:
        super().__init__(f"the broker ended: {last} (all of it is in {log})")
        self.log = log


class NoResultsError(BenchError):
    """There are no results to report."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"no results are in {path} yet: measure first, with make bench")
        self.path = path


class ProgramMissingError(BenchError):
    """Programs that a measure needs are not installed."""

    def __init__(self, programs: list[str]) -> None:
        packages = " ".join(sorted({PACKAGES[program] for program in programs}))
        super().__init__(
            f"{', '.join(programs)} missing: install with apt-get install {packages}, or measure something else: "
            "make bench ARGS='--measures …'"
        )
        self.programs = programs


class RunFailedError(BenchError):
    """One run gives no figures. The others go on."""


class JobExitedError(RunFailedError):
    """A job ended by itself, which none should."""

    def __init__(self, job: str, log: Path) -> None:
        super().__init__(f"{job} ended by itself: see {log}")
        self.job = job
        self.log = log


class JobStalledError(RunFailedError):
    """A job did nothing for so long that it is given up."""

    def __init__(self, job: str, waited_for: str, waited_s: float, log: Path) -> None:
        super().__init__(f"{job} gave no {waited_for} for {waited_s:.0f} s: see {log}")
        self.job = job
        self.log = log
        self.waited_s = waited_s


class HelperExitedError(RunFailedError):
    """The process that sends events, or the one that receives snapshots, died."""

    def __init__(self, task: str) -> None:
        super().__init__(f"the harness's own process {task} ended without a result: its error is printed above")
        self.task = task


class LoadFailedError(RunFailedError):
    """A load generator did not run, or its requests were not answered."""

    def __init__(self, program: str, output: str) -> None:
        super().__init__(f"{program}: {output}")
        self.program = program


def last_line(output: str, otherwise: str = "it said nothing") -> str:
    """The end of a program's output, where most programs report why they end."""
    return next(iter(output.strip().splitlines()[-1:]), otherwise)


def require(programs: Iterable[str]) -> None:
    """Raise ProgramMissingError if one of these is not installed."""
    if missing := [program for program in programs if shutil.which(program) is None]:
        raise ProgramMissingError(missing)
