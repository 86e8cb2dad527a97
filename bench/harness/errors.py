"""Errors that end a run or the whole benchmark. Each message has the remedy."""

from pathlib import Path


class BenchError(Exception):
    """The base of the harness's errors."""


class BrokerExitedError(BenchError):
    """The embedded broker did not start, or died."""

    def __init__(self, log: Path, last: str) -> None:
        super().__init__(f"the broker ended: {last} (all of it is in {log})")
        self.log = log


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


class NotCommittedError(RunFailedError):
    """A worker answered everything, and did not commit it: after a restart it would call again."""

    def __init__(self, job: str, committed: int, events: int, log: Path) -> None:
        super().__init__(f"{job} committed {committed:,} of {events:,} snapshots: see {log}")
        self.job = job
        self.committed = committed
        self.log = log


class HelperExitedError(RunFailedError):
    """The process that sends events, or the one that receives snapshots, died."""

    def __init__(self, task: str) -> None:
        super().__init__(f"the harness's own process {task} ended without a result: its error is printed above")
        self.task = task


class NoResultsError(BenchError):
    """There are no results to report."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"no results are in {path} yet: measure first, with make bench")
        self.path = path


def last_line(output: str, otherwise: str = "it said nothing") -> str:
    """The end of a program's output, where most programs report why they end."""
    return next(iter(output.strip().splitlines()[-1:]), otherwise)
