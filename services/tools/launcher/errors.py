"""The errors that end a launch. Each message has the remedy, or the last output of the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.errors import PermanentError, RetryableError, StateloopError

if TYPE_CHECKING:
    from pathlib import Path


class LaunchError(StateloopError):
    """The base of the errors that end a launch: the launcher stops all processes then."""


class AlreadyRunningError(LaunchError, PermanentError):
    """Another launcher uses the data folder."""

    def __init__(self, data: Path, pid: int) -> None:
        super().__init__(
            f"it is already running on the data in {data} (process {pid}): stop it with Ctrl-C or kill {pid}, "
            "or set STATELOOP_DATA and the ports to others",
        )
        self.pid = pid


class StillStoppingError(LaunchError, RetryableError):
    """The processes of a killed launcher have not exited yet."""

    def __init__(self, data: Path, waited_s: float) -> None:
        super().__init__(f"The processes of a killed run in {data} have not exited after {waited_s:g} s: try again")
        self.waited_s = waited_s


class DataFolderError(LaunchError, PermanentError):
    """The data folder cannot be created, written or cleared."""

    def __init__(self, data: Path, cause: str) -> None:
        super().__init__(f"{data} cannot be used ({cause}): make it writable, or set STATELOOP_DATA to another folder")
        self.data = data


class StartFailedError(LaunchError, PermanentError):
    """A process exited before it was ready, or the system did not start it. `why` is its last output, or the error."""

    def __init__(self, part: str, why: str, log: Path) -> None:
        super().__init__(f"{part} did not start: {why or 'no output'} (see {log})")
        self.part = part
        self.why = why


class StartTimeoutError(LaunchError, RetryableError):
    """A process runs, and was not ready in time."""

    def __init__(self, part: str, waited_s: float, why: str, log: Path) -> None:
        super().__init__(f"{part} was not ready after {waited_s:g} s; its last line: {why or 'none'} (see {log})")
        self.part = part


class RestartLimitError(LaunchError, RetryableError):
    """A process died more often than its restart policy allows."""

    def __init__(self, part: str, deaths: int, within_s: float, why: str, log: Path) -> None:
        super().__init__(
            f"{part} ended {deaths} times within {within_s:g} s; its last line: {why or 'none'} (see {log})"
        )
        self.part = part
        self.deaths = deaths
