"""How much is measured, and where."""

from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Plan:
    """Sizes of all measurements."""

    runs: int = 3
    """How often each job is measured, alternated with the others."""
    events: int = 1_000_000
    """Of the drain."""
    devices: int = 100_000
    """That send them."""
    rate: int = 1_000
    """Events a second while latency is measured."""
    rate_devices: int = 2_000
    """That send those."""
    batch_s: int = 60
    once: bool = True
    """Whether the jobs that are measured once are measured at all."""
    settle_s: float = 3.0
    """How long to wait for more when all snapshots are there: a duplicate may come late."""

    @property
    def skipped(self) -> int:
        """How many of the drain's snapshots do not count towards its rate: a job is still warming up."""
        return self.events // 10

    @property
    def lead_s(self) -> float:
        """From the end of a batch to the first event that is measured: the next end then falls well into what is."""
        return self.batch_s / 5

    @property
    def within_s(self) -> float:
        """How long the part without the end of a batch is: it begins after one, and the next is not near."""
        return self.batch_s * 0.75


FULL = Plan()
QUICK = Plan(runs=1, events=200_000, devices=20_000, batch_s=15, once=False)


@dataclass(frozen=True)
class Site:
    """Where it is measured: the broker's address, and the folder that everything is written to."""

    boot: str
    folder: Path
    jars: Path
    """The Kafka connector's, for Spark."""

    def log(self, name: str) -> Path:
        """The file for a process's output."""
        return self.folder / "log" / f"{name}.log"
