"""Results: kept as JSON lines, printed as tables, compared with the targets."""

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import orjson
from rich.console import Console
from rich.table import Table

from bench.harness.figures import Figures, median
from bench.harness.jobs import MEASURED, REFERENCE
from bench.harness.oracle import Verdict

HEADINGS = {
    "records_per_s": ("records/s", ",.0f"),
    "cpu_s": ("CPU s", ".1f"),
    "p50_ms": ("p50 ms", ".1f"),
    "p95_ms": ("p95 ms", ".1f"),
    "p99_ms": ("p99 ms", ".1f"),
    "p999_ms": ("p99.9 ms", ".1f"),
    "max_ms": ("max ms", ".0f"),
    "gap_ms": ("largest gap ms", ".0f"),
    "boundaries": ("batch ends in it", ".0f"),
    "cores": ("cores", ".2f"),
    "load_lag_ms": ("load late by ms", ".0f"),
}
"""What is printed, in this order; all figures are in the JSON lines."""
CONDITIONS = {"boundaries", "load_lag_ms"}
"""What a run met with, rather than what it achieved: no ratio is given."""


@dataclass(frozen=True)
class Result:
    """One measure of one run of one job. A run that broke off has a problem, and neither figures nor verdict."""

    measure: str
    job: str
    run: int
    figures: Figures = field(default_factory=dict)
    verdict: Verdict | None = None
    problem: str | None = None

    @property
    def right(self) -> bool:
        """Whether the run counts: it gave exactly one correct snapshot for each event."""
        return self.verdict is not None and self.verdict.right

    def __str__(self) -> str:
        shown = ", ".join(f"{HEADINGS[name][0]} {_cell(name, value)}" for name, value in _shown(self.figures))
        why = self.problem or str(self.verdict)
        return f"{'ok    ' if self.right else 'FAILED'} {self.measure}, {self.job} {self.run}: {shown}; {why}"


@dataclass(frozen=True)
class Target:
    """A bound on a median of our job, or on its ratio to that of the reference."""

    measure: str
    figure: str
    bound: float
    least: bool = False
    ratio: bool = False

    def outcome(self, results: Sequence[Result]) -> tuple[bool, str]:
        """Whether it is met, and the sentence that says so."""
        value = middle(results, self.measure, MEASURED.name, self.figure)
        if self.ratio:
            value /= middle(results, self.measure, REFERENCE.name, self.figure)
        met = value >= self.bound if self.least else value <= self.bound
        what = f"{HEADINGS[self.figure][0]}{f' over that of {REFERENCE.name}' if self.ratio else ''}"
        sign = "≥" if self.least else "≤"
        verdict = "met" if met else "NOT MET"
        return met, f"{verdict:7} {self.measure}: {what} {value:.2f} (target {sign} {self.bound:g})"


TARGETS = (
    Target("latency over a whole batch", "p50_ms", 6),
    Target("latency over a whole batch", "p99_ms", 30),
    Target("drain", "records_per_s", 1.0, least=True, ratio=True),
)


def keep(results: Iterable[Result], path: Path) -> None:
    """Append results to a file of JSON lines."""
    with path.open("ab") as file:
        for result in results:
            facts = {"at": datetime.now(UTC), "cpus": os.cpu_count(), "right": result.right} | vars(result)
            file.write(orjson.dumps(facts) + b"\n")


def middle(results: Iterable[Result], measure: str, job: str, figure: str) -> float:
    """The median of a figure over the runs that count. NaN if none does."""
    return median(values(results, measure, job, figure))


def values(results: Iterable[Result], measure: str, job: str, figure: str) -> list[float]:
    """A figure of each run that counts."""
    ours = (result for result in results if (result.measure, result.job) == (measure, job) and result.right)
    return [result.figures[figure] for result in ours if figure in result.figures]


def show(results: Sequence[Result], console: Console) -> None:
    """Print a table for each measure, then the targets."""
    for measure in dict.fromkeys(result.measure for result in results):
        console.print(table(measure, [result for result in results if result.measure == measure]))
    for target in TARGETS:
        console.print(target.outcome(results)[1], highlight=False, soft_wrap=True)


def table(measure: str, results: Sequence[Result]) -> Table:
    """A row for each job: medians, and below them all values; then what the reference is compared with."""
    names = [name for name in HEADINGS if any(name in result.figures for result in results)]
    drawn = Table(title=f"{measure}: median, and each run", title_justify="left", show_lines=True)
    for heading in ("", *(HEADINGS[name][0] for name in names)):
        drawn.add_column(heading, justify="right" if heading else "left")
    for job in dict.fromkeys(result.job for result in results):
        drawn.add_row(job, *(_cells(name, values(results, measure, job, name)) for name in names))
    ratios = [
        middle(results, measure, MEASURED.name, name) / (middle(results, measure, REFERENCE.name, name) or math.nan)
        for name in names
    ]
    cells = ("" if name in CONDITIONS else f"{ratio:.2f}" for name, ratio in zip(names, ratios, strict=True))
    drawn.add_row(f"{MEASURED.name} / {REFERENCE.name}", *cells)
    return drawn


def _shown(figures: Figures) -> list[tuple[str, float]]:
    return [(name, figures[name]) for name in HEADINGS if name in figures]


def _cells(name: str, each: list[float]) -> str:
    all_of_them = " ".join(_cell(name, value) for value in each)
    return f"{_cell(name, median(each))}\n[dim]{all_of_them}[/dim]" if each else "no run counts"


def _cell(name: str, value: float) -> str:
    return format(value, HEADINGS[name][1])
