"""Results, kept as JSON lines and read back."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from bench.harness.errors import NoResultsError
from bench.harness.figures import Figures, median


@dataclass
class OracleReport:
    """The result of a check: how many events gave a correct snapshot."""

    events: int
    snapshots: int = 0
    missing: int = 0
    """Events that gave no snapshot."""
    duplicates: int = 0
    wrong: int = 0
    """Snapshots with a wrong field; the device's count identifies each, so a wrong count is missing."""
    unknown: int = 0
    """Snapshots of no event, or that cannot be read."""
    example: str | None = None
    given: str = "events"
    gives: str = "snapshot"

    @property
    def right(self) -> bool:
        """Whether each event gave exactly one correct snapshot."""
        return not (self.missing or self.duplicates or self.wrong or self.unknown)

    def __str__(self) -> str:
        if self.right:
            return f"each of {self.events:,} {self.given} gave one correct {self.gives}"
        counts = ", ".join(f"{getattr(self, what):,} {what}" for what in ("missing", "duplicates", "wrong", "unknown"))
        return f"of {self.events:,} {self.given}: {counts}" + (f"; {self.example}" if self.example else "")


@dataclass(frozen=True)
class RunResult:
    """One measure of one run of one job. A run that broke off has a problem, and neither figures nor report."""

    measure: str
    job: str
    run: int
    figures: Figures = field(default_factory=dict)
    report: OracleReport | None = None
    problem: str | None = None
    size: str = ""
    """How much was measured: figures of another size are of another measure."""

    @property
    def right(self) -> bool:
        """Whether the run counts: it gave exactly one correct snapshot for each event."""
        return self.report is not None and self.report.right


@dataclass(frozen=True)
class Session:
    """A session of measurements on one machine: its start, and the machine's properties."""

    session: str
    wake_us: float | None = None
    """The cost of waking another core; see bench/harness/machine.py."""
    cpus: int | None = field(default_factory=os.cpu_count)
    against: str | None = None
    """The folder of the checkout from which `before` runs."""

    def __str__(self) -> str:
        woken = f"; one wakes another in {self.wake_us:.0f} µs" if self.wake_us else ""
        return f"{self.cpus} CPU{woken}" + (f"; before is {self.against}" if self.against else "")


def keep(result: RunResult, path: Path, session: Session) -> None:
    """Append a result to a file of JSON lines."""
    facts = {"at": datetime.now(UTC), "right": result.right} | vars(session)
    with path.open("ab") as file:
        file.write(orjson.dumps(facts | vars(result)) + b"\n")


def kept(path: Path) -> list[RunResult]:
    """Return the results of the last session of each measure. Raises NoResultsError."""
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
    if not lines:
        raise NoResultsError(path)
    last = {line["measure"]: line["session"] for line in lines}
    return [_result(line) for line in lines if line["session"] == last[line["measure"]]]


def middle(results: Iterable[RunResult], measure: str, job: str, figure: str) -> float:
    """The median of a figure over the runs that count. NaN if none does."""
    return median(values(results, measure, job, figure))


def values(results: Iterable[RunResult], measure: str, job: str, figure: str) -> list[float]:
    """A figure of each run that counts."""
    ours = (result for result in results if (result.measure, result.job) == (measure, job) and result.right)
    return [result.figures[figure] for result in ours if figure in result.figures]


def _result(line: dict[str, Any]) -> RunResult:
    figures = {name: value for name, value in line["figures"].items() if value is not None}  # null was not a number
    report = OracleReport(**line["report"]) if line.get("report") else None
    return RunResult(line["measure"], line["job"], line["run"], figures, report, line["problem"], line["size"])
