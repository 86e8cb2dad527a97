"""Results as lines and tables."""

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from bench.harness.figures import median
from bench.harness.headings import CONDITIONS, HEADINGS, cell, line
from bench.harness.jobs import OURS
from bench.harness.results import RunResult, middle, values

LATE_MS = 5.0
"""A load that is later than this for one event in a hundred is no longer the declared load."""


def described(result: RunResult) -> str:
    """A run in a line."""
    why = result.problem or str(result.report)
    head = f"{'ok    ' if result.right else 'FAILED'} {result.measure}, {result.job} {result.run}: "
    return head + "; ".join(part for part in (line(result.figures), why, late(result)) if part)


def late(result: RunResult) -> str:
    """Return a note on the load of a run that was late."""
    late_ms = result.figures.get("late_p99_ms", 0.0)
    return f"LOAD LATE: {late_ms:.0f} ms at p99, so events came in bursts" if late_ms > LATE_MS else ""


def show(results: Sequence[RunResult], console: Console) -> None:
    """Print a table for each measure, and the runs with a late load."""
    for measure in dict.fromkeys(result.measure for result in results):
        console.print(table(measure, [result for result in results if result.measure == measure]))
    for result in results:
        if what := late(result):
            console.print(f"{result.measure}, {result.job} {result.run}: {what}", highlight=False, soft_wrap=True)


def table(measure: str, results: Sequence[RunResult]) -> Table:
    """A row for each job: medians, and below them all values; then the ratio of ours to each other job."""
    names = [name for name in HEADINGS if any(name in result.figures for result in results)]
    title = f"{measure}: {results[0].size}; median, and each run"
    drawn = Table(title=title, title_justify="left", show_lines=True)
    for heading in ("", *(HEADINGS[name][0] for name in names)):
        drawn.add_column(heading, justify="right" if heading else "left")
    jobs = dict.fromkeys(result.job for result in results)
    for job in jobs:
        drawn.add_row(job, *(_cells(name, values(results, measure, job, name)) for name in names))
    for job in jobs if OURS in jobs else ():
        if job != OURS:
            drawn.add_row(f"{OURS} / {job}", *(_ratio(results, measure, job, name) for name in names))
    return drawn


def _ratio(results: Sequence[RunResult], measure: str, job: str, name: str) -> str:
    ratio = middle(results, measure, OURS, name) / (middle(results, measure, job, name) or math.nan)
    return "" if name in CONDITIONS or math.isnan(ratio) else f"{ratio:.2f}"


def _cells(name: str, each: list[float]) -> str:
    all_of_them = " ".join(cell(name, value) for value in each)
    return f"{cell(name, median(each))}\n[dim]{all_of_them}[/dim]" if each else "no run counts"
