"""Processes in a group of their own: what they use, how they are waited for, and how they are ended."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from bench.harness.errors import JobExitedError, JobStalledError
from bench.harness.jobs import CHECKOUT, Job
from bench.harness.measure import Site
from bench.peers.build import FOLDER as PEERS
from bench.peers.build import tool

STOP_S = 15
PAUSE_S = 0.1
UTIME, STIME, STATE, SESSION, RSS = 11, 12, 0, 3, 21
"""The positions of the fields in /proc/PID/stat, counted after the process's name."""
NOTHING: Mapping[str, str] = {}
LOOK_S = 0.1


class Group:
    """A process that leads a group of its own, with its output in a log."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path, folder: Path = CHECKOUT) -> None:
        """Run the code of the checkout in `folder`, whatever is installed."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            self._leader = subprocess.Popen(
                command,
                cwd=folder,
                env=os.environ | {"PYTHONPATH": str(folder)} | environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def ended(self) -> bool:
        """Return whether the leader is gone."""
        return self._leader.poll() is not None

    def cpu_s(self) -> float:
        """The CPU seconds that all its living processes have used."""
        ticks = sum(int(stat[UTIME]) + int(stat[STIME]) for _, stat in self._members())
        return ticks / os.sysconf("SC_CLK_TCK")

    def pids(self) -> list[int]:
        """Its living processes."""
        return [pid for pid, _ in self._members()]

    def rss_mb(self) -> float:
        """The memory that all its living processes hold, in MB of 1,000,000 bytes."""
        return sum(int(stat[RSS]) for _, stat in self._members()) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def own_mb(self) -> float:
        """The part of it that is no file's, so that the system cannot take it back."""
        return sum(_anonymous_kb(pid) for pid in self.pids()) * 1024 / 1e6

    def kill(self) -> None:
        """Give none of them time to end: kill -9."""
        self._signal(signal.SIGKILL)
        self._leader.wait()

    def stop(self) -> None:
        """Ask all of them to stop; kill those that do not."""
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_S
        while any(self._members()) and time.monotonic() < deadline:
            self._leader.poll()
            time.sleep(PAUSE_S)
        self._signal(signal.SIGKILL)
        self._leader.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._leader.pid, number)

    def _members(self) -> Iterator[tuple[int, list[str]]]:
        """Each one's number, and what proc(5) has in its stat. Spark's Python processes have groups of their own."""
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                stat = path.read_text().rpartition(")")[2].split()
                if int(stat[SESSION]) == self._leader.pid and stat[STATE] not in "ZX":
                    yield int(path.parent.name), stat


class RunningJob:
    """A job that runs on an empty checkpoint. A context manager; leaving it ends the job and removes what it kept."""

    def __init__(self, job: Job, site: Site, name: str, more: Mapping[str, str] = NOTHING) -> None:
        """`more` has further values for its command and its environment."""
        self.job = job
        self.log = site.log(name)
        self._folder = site.folder / "run" / name
        self._checkpoint = self._folder / "checkpoint"
        self._commits: dict[str, float] = {}
        scratch = self._folder / "scratch"
        scratch.mkdir(parents=True)
        facts = {
            "boot": site.boot,
            "checkpoint": str(self._checkpoint),
            "scratch": str(scratch),
            "run": name,
            "java": tool("java"),
            "jars": str(site.jars),
            "peers": str(PEERS),
            "batch_s": str(site.batch_s),
            **more,
        }
        templates = job.environment | (job.batch if site.batch_s else {})
        environment = {name: value.format(**facts) for name, value in templates.items()} | {
            "BOOT": site.boot,
            "CKPT": str(self._checkpoint),
            "SPARK_LOCAL_DIRS": str(scratch),
        }
        self.began = time.time()
        self.group = Group([part.format(**facts) for part in job.command], environment, self.log, job.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.group.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def cpu_s(self) -> float:
        """The CPU seconds that it has used."""
        return self.group.cpu_s()

    def commits(self, pattern: str | None) -> list[float]:
        """Return the ends of its batches, in seconds of the epoch; the previous call's ends are included.

        The pattern is a glob of the files that appear in its checkpoint whenever a batch ends. None: it has no batches.
        """
        for path in self._checkpoint.glob(pattern or "nothing"):
            with suppress(FileNotFoundError):  # a job keeps the last few
                self._commits.setdefault(path.name, path.stat().st_mtime)
        return sorted(self._commits.values())

    def require_running(self) -> None:
        """Raise JobExitedError if it does not run any more."""
        if self.group.ended():
            raise JobExitedError(self.job.name, self.log)

    def wait(self, seconds: float) -> None:
        """Wait while it runs. Raises JobExitedError."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.require_running()
            time.sleep(min(left, 10 * LOOK_S))
        self.require_running()

    def until(self, condition: Callable[[], bool], waited_for: str, patience_s: float) -> None:
        """Wait for a condition. Raises JobExitedError, JobStalledError."""
        deadline = time.monotonic() + patience_s
        while not condition():
            self.require_running()
            if time.monotonic() > deadline:
                raise self.stalled(waited_for, patience_s)
            time.sleep(LOOK_S)

    def counts(self, count: Callable[[], int], counted: str, patience_s: float, look_s: float = 0.5) -> Iterator[int]:
        """Yield a count again and again. Raises JobExitedError, and JobStalledError if it does not grow for so long."""
        last, since = 0, time.monotonic()
        while True:
            self.require_running()
            time.sleep(look_s)
            if (now := count()) > last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > patience_s:
                raise self.stalled(f"more {counted} than {last:,}", patience_s)
            yield now

    def stalled(self, waited_for: str, waited_s: float) -> JobStalledError:
        """The error to raise when it gives nothing any more."""
        return JobStalledError(self.job.name, waited_for, waited_s, self.log)


def _anonymous_kb(pid: int) -> int:
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon:")), 0)
    return 0
