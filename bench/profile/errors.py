"""Reasons why there is no profile. Each message has the remedy."""

from pathlib import Path

from bench.harness.errors import BenchError


class NoAgentError(BenchError):
    """The profiler is not made for this machine."""

    def __init__(self, system: str, machine: str, there: tuple[str, ...]) -> None:
        super().__init__(
            f"async-profiler is not made for {system} on {machine}, only for {', '.join(there)}: profile there"
        )
        self.system = system
        self.machine = machine


class AgentMissingError(BenchError):
    """The profiler could not be downloaded."""

    def __init__(self, last: str) -> None:
        super().__init__(f"async-profiler could not be downloaded ({last}): check the network and try again")


class NoSamplesError(BenchError):
    """The job ended without leaving its samples."""

    def __init__(self, log: Path) -> None:
        super().__init__(f"the job left no samples: see {log}")
        self.log = log
