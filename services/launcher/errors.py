"""What ends a launch. Each message says what to do, or what the part itself said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.errors import StateloopError

if TYPE_CHECKING:
    from pathlib import Path


class LaunchError(StateloopError):
    """The base of what ends a launch. All that was started is stopped then."""


class RetryableError(LaunchError):
    """The same launch may succeed later."""


class PermanentError(LaunchError):
    """Nothing changes until somebody does what the message says."""


class AlreadyRunningError(PermanentError):
    """Another launcher works in the data folder."""

    def __init__(self, data: Path, pid: int) -> None:
        super().__init__(
            f"it runs already, on the data in {data} (process {pid}): stop that one with Ctrl-C or kill {pid}, "
            "or set STATELOOP_DATA and the ports to others",
        )
        self.pid = pid


class StillStoppingError(RetryableError):
    """The processes of a launcher that was killed are not gone yet."""

    def __init__(self, data: Path, waited_s: float) -> None:
        super().__init__(f"The processes of a killed run in {data} are not gone after {waited_s:g} s: try again")
        self.waited_s = waited_s


class FolderUnusableError(PermanentError):
    """The data folder cannot be made, written or emptied."""

    def __init__(self, data: Path, cause: str) -> None:
        super().__init__(f"{data} cannot be used ({cause}): make it writable, or set STATELOOP_DATA to another folder")
        self.data = data


class PartFailedError(PermanentError):
    """A part ended before it was ready. `why` is what it said last."""

    def __init__(self, part: str, why: str, log: Path) -> None:
        super().__init__(f"{part} did not start: {why or 'it said nothing'} (see {log})")
        self.part = part
        self.why = why


class NotReadyError(RetryableError):
    """A part runs, but was not ready in time."""

    def __init__(self, part: str, waited_s: float, why: str, log: Path) -> None:
        super().__init__(f"{part} was not ready after {waited_s:g} s; its last line: {why or 'none'} (see {log})")
        self.part = part


class KeepsDyingError(RetryableError):
    """A part was started again as often as its policy allows, and died again."""

    def __init__(self, part: str, deaths: int, within_s: float, why: str, log: Path) -> None:
        super().__init__(
            f"{part} ended {deaths} times within {within_s:g} s; its last line: {why or 'none'} (see {log})"
        )
        self.part = part
        self.deaths = deaths
