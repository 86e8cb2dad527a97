"""The errors that stop a comparison."""

from pathlib import Path

from bench.harness.errors import RunFailedError


class CommandFailedError(RunFailedError):
    """A command on a job failed, or did not end."""

    def __init__(self, engine: str, log: Path) -> None:
        super().__init__(f"a command of {engine} failed: see {log}")
        self.log = log


class NoOutputError(RunFailedError):
    """A job publishes nothing any more."""

    def __init__(self, engine: str, waited_s: float) -> None:
        super().__init__(f"{engine} published nothing for {waited_s:.0f} s: see the logs of lifecycle-{engine}")
        self.waited_s = waited_s
