"""What a measure is, how much of it is measured, and where."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from bench.harness.figures import Figures
from bench.harness.jobs import Job
from bench.harness.results import OracleReport

J = TypeVar("J", bound=Job)
J_contra = TypeVar("J_contra", bound=Job, contravariant=True)
Show = Callable[[str], None]
"""Takes what is being done."""


@dataclass(frozen=True)
class Site:
    """The site of the runs: the broker's address, and the folder of all files."""

    boot: str
    folder: Path
    jars: Path
    """The Kafka connector's, for Spark."""
    pids: tuple[int, ...] = ()
    """The broker's processes."""
    batch_s: int | None = None
    """The length of batches, for jobs with batches; None for the default of each."""
    settle_s: float = 3.0
    """How long to wait for more when all records are there: a duplicate may come late."""

    def log(self, name: str) -> Path:
        """The file for a process's output."""
        return self.folder / "log" / f"{name}.log"


class Meter(Protocol[J_contra]):
    """Measures one job at a time, and checks its results."""

    def measure(self, job: J_contra, name: str, show: Show) -> tuple[Figures, OracleReport]:
        """One run of one job; no other run has the name. Raises RunFailedError."""
        ...


@dataclass(frozen=True)
class Measure(ABC, Generic[J]):
    """A measure and its size. As a string it is its size: only figures of one size are comparable."""

    name: str

    @property
    @abstractmethod
    def jobs(self) -> tuple[J, ...]:
        """The jobs that do what is measured. The first is ours."""

    @abstractmethod
    def meter(self, site: Site) -> Meter[J]:
        """What measures them."""

    def sized(self, events: int | None, seconds: int | None) -> Self:
        """The same measure with `events` events, snapshots or keys, and `seconds` seconds; None changes nothing."""
        sizes = {"events": events, "keys": events, "seconds": seconds}
        changes: dict[str, Any] = {field.name: sizes[field.name] for field in fields(self) if sizes.get(field.name)}
        return replace(self, **changes)


@dataclass(frozen=True)
class Plan:
    """All that is measured."""

    measures: tuple[Measure[Any], ...]
    runs: int = 3
    """How often each job is measured, alternated with the others."""
    batch_s: int | None = None

    def size(self, measure: Measure[Any]) -> str:
        """Return the size of a measure."""
        return f"{measure}" + (f", batches of {self.batch_s} s" if self.batch_s else "")

    def only(self, names: list[str]) -> "Plan":
        """These measures."""
        return replace(self, measures=tuple(measure for measure in self.measures if measure.name in names))

    def sized(self, events: int | None, seconds: int | None) -> "Plan":
        """With measures of this size."""
        return replace(self, measures=tuple(measure.sized(events, seconds) for measure in self.measures))
