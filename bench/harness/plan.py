"""How much is measured, and where."""

from dataclasses import dataclass, replace
from pathlib import Path

from bench.alerts.measures import AlertStream, RuleChanges
from bench.alerts.measures import measures as alerts
from bench.coverage.measures import CoverageCost, CoverageQueries
from bench.coverage.measures import measures as coverage
from bench.enrichment.measures import Calls, measures
from bench.harness.load import Fleet
from bench.query.measures import Keys, LoopMeasure
from bench.query.measures import measures as queries
from bench.raw.measures import RawChunks
from bench.raw.measures import measures as raws
from bench.vitals.measures import ChunkVisibility
from bench.vitals.measures import measures as vitals
from bench.windows.measures import WindowCounts
from bench.windows.measures import measures as windows

CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True)
class BacklogPlan:
    """Events that are all there before a job starts: measured is how fast it drains them."""

    name: str
    events: int
    devices: int

    def __str__(self) -> str:
        return f"{self.events:,} events of {self.devices:,} devices"

    @property
    def skipped(self) -> int:
        """How many of its snapshots do not count towards the rate: a job is still warming up."""
        return self.events // 10


@dataclass(frozen=True)
class Stream:
    """Events that come at a steady rate, a second, while a job runs: measured is how late their snapshots are."""

    name: str
    rate: int
    seconds: int
    """How long is measured,"""
    warm_s: int
    """after the job has run for so long, and its first batch has ended."""
    devices: int = 2_000
    hot: float = 0.0
    """The share of one device, where the others differ too. 0: all are alike."""

    def __str__(self) -> str:
        hot = f", one of them with {self.hot:.0%}," if self.hot else ""
        return f"{self.rate:,} events/s of {self.devices:,} devices{hot} for {self.seconds} s"

    def fleet(self) -> Fleet:
        """The devices, from their first turn."""
        return Fleet("d", self.devices, self.hot)


Measure = (
    BacklogPlan
    | Stream
    | WindowCounts
    | AlertStream
    | RuleChanges
    | CoverageCost
    | CoverageQueries
    | RawChunks
    | ChunkVisibility
    | Calls
    | Keys
    | LoopMeasure
)


@dataclass(frozen=True)
class Plan:
    """Sizes of all measurements."""

    measures: tuple[Measure, ...]
    runs: int = 3
    """How often each job is measured, alternated with the others."""
    batch_s: int | None = None
    """The length of batches, for jobs with batches; None for the default of each."""
    settle_s: float = 3.0
    """How long to wait for more when all snapshots are there: a duplicate may come late."""

    def size(self, measure: Measure) -> str:
        """Return the size of a measure: only figures of one size are comparable."""
        return f"{measure}" + (f", batches of {self.batch_s} s" if self.batch_s else "")

    def only(self, names: list[str]) -> "Plan":
        """These measures."""
        return replace(self, measures=tuple(one for one in self.measures if one.name in names))

    def sized(self, events: int | None, seconds: int | None) -> "Plan":
        """With so many events in each backlog, and so many seconds of each stream; None leaves what there is."""
        return replace(self, measures=tuple(_sized(one, events, seconds) for one in self.measures))


def _sized(measure: Measure, events: int | None, seconds: int | None) -> Measure:
    if isinstance(measure, BacklogPlan | WindowCounts | Calls):
        return replace(measure, events=events or measure.events)
    if isinstance(measure, RawChunks):
        return replace(measure, chunks=events or measure.chunks)
    if isinstance(measure, Keys):
        return replace(measure, keys=events or measure.keys, seconds=seconds or measure.seconds)
    if isinstance(measure, RuleChanges):
        return replace(measure, keys=events or measure.keys)
    return replace(measure, seconds=seconds or measure.seconds)


FULL = Plan(
    (
        BacklogPlan("drain-100k", events=3_000_000, devices=100_000),
        BacklogPlan("drain-2m", events=3_000_000, devices=2_000_000),
        Stream("latency-1k", rate=1_000, seconds=600, warm_s=60),
        Stream("latency-10k", rate=10_000, seconds=300, warm_s=30),
        Stream("hot-10k", rate=10_000, seconds=300, warm_s=30, hot=0.2),
        *windows(1),
        *alerts(1),
        *raws(1),
        *vitals(1),
        *coverage(1),
        *measures(1),
        *queries(1),
    )
)
QUICK = Plan(
    (
        BacklogPlan("drain-100k", events=200_000, devices=7_000),
        BacklogPlan("drain-2m", events=200_000, devices=140_000),
        Stream("latency-1k", rate=1_000, seconds=10, warm_s=5),
        Stream("latency-10k", rate=10_000, seconds=10, warm_s=10),
        Stream("hot-10k", rate=10_000, seconds=10, warm_s=10, hot=0.2),
        *windows(10),
        *alerts(10),
        *raws(20),
        *vitals(20),
        *coverage(20),
        *measures(5),
        *queries(20),
    ),
    runs=1,
    batch_s=15,
)


@dataclass(frozen=True)
class Site:
    """The site of a run: the broker's address, and the folder of all files."""

    boot: str
    folder: Path
    jars: Path
    """The Kafka connector's, for Spark."""
    pids: tuple[int, ...] = ()
    """The broker's processes."""

    def log(self, name: str) -> Path:
        """The file for a process's output."""
        return self.folder / "log" / f"{name}.log"
