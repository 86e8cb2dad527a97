"""The results of all runs so far, as a table of the terminal and as a page."""

from __future__ import annotations

import csv
import json
import math
import re
import statistics
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from tests.faults.catalogue import FAULTS
from tests.faults.ledgers import Verdict
from tests.faults.soak import TRAFFIC as SOAK_TRAFFIC

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.faults.catalogue import Fault

COLUMNS = (
    "fault", "seeds", "lost", "counted twice", "answers missing", "calls repeated", "reads backwards",
    "longest stall", "people needed",
)  # fmt: skip
BY_TEST = "by test"
HEAD = """# Reliability

`make faults` runs a loop of real parts (broker, Spark job, two workers, query service) under the launcher of
`stateloop up`, with an API that misbehaves on demand. A seed gives the load: {rate} readings a second of {meters}
meters, each with an owner that the API knows. While they are sent, a fault begins and ends. Then the run is judged.

## How a run is judged

- **Events and snapshots**: count, sum and last plate of each meter are those of a plain Python fold, and each record
  that must be refused has a dead letter. Else it is *lost*, or *counted twice*.
- **Calls that the API logged**: a call for a plate that was answered before is *repeated*.
- **Feedback**: each meter has the owner of its last plate, or a dead letter with the reason. Else an *answer* is
  *missing*.
- **Answers of the query service**: at last it has the newest snapshot of each meter; no answer is older than the one
  before. Else it is *lost*, or a *read* went *backwards*.

The longest stall is the longest time without a newer state for a client that reads all the time, the fault included.
A person is needed if the launcher gives up, or if nothing changes for {patience} s and not all is right. All columns
but *calls repeated* and *longest stall* have to be 0. `tests/faults/test_ledgers.py` shows that each ledger can fail.

## Results

On a machine of 2 cores with other work at the same time. Each row has the date and the commit of its last seed.

"""
FOUND_SCRIPTS = Path("tests/simulation/test_found.py"), Path("tests/simulation/instances/test_found.py")
FOUND = """## Found by the simulator

`make simulate` runs the code of workers, and of query instances, on a model of the broker and of the job, with virtual
time: random scripts of load and faults, each from a seed. `make test` has some fixed seeds and some fresh ones. Until
2026-11-30 some 100,000 seeds were run. These failed; the defects are mended, and each shortest script is a test in a
`test_found.py` of `tests/simulation`:

{found}"""
SOAKED = Path("docs/images/soak.csv")
PERIODS = 8
SOAK_SUMS = ("events", "lost", "twice", "missing", "backwards", "kept", "people")
SOAK_AT_THE_END = {
    "memory, MB": "memory_mb_",
    "disk, MB": "disk_mb",
    "descriptors": "descriptors_",
    "threads": "threads_",
}
SOAK_MEDIANS = {
    "event to snapshot p50, ms": "published_p50_ms",
    "p99, ms": "published_p99_ms",
    "read p99, ms": "read_p99_ms",
    "expiry behind, s": "expiry_behind_s",
}
SOAK_NOTE = """
The watermark stood still after each `kill -9` of the broker, until the job was killed too: its client asked with a
former leader epoch. That is mended: in 34 minutes of 2026-11-28, with 1,249,830 events and a `kill -9` of the job, of
the broker, of a worker and twice of the query service, expiry was 31 to 37 s behind throughout, all columns of losses
were 0, and no request was repeated. The longest stall, after the kill of the job, was 84 s. In 33 minutes of
2026-11-30, with 1,203,858 events and a `kill -9` of the broker and of a worker, expiry was 30 to 39 s behind, and the
rest was the same; the longest stall was 15.7 s. The memory of the job grew from 1.2 to 1.8 GB meanwhile: the heap of
at most 1 GB filled, and a full collection left 283 MB."""
SOAK = """## A loop that runs on

`make soak` gives the same loop {rate} events a second, of {meters} new meters each minute, whose windows end while it
runs. It judges each minute as a run. This one took {minutes} minutes, with {disturbed}.

![Memory, descriptors, threads, disk, events and times by the minute](images/soak.svg)

Sums of each period; memory, disk, descriptors and threads of all parts at its end; medians of the times of its minutes.
{note}

"""


@dataclass
class Result:
    """What became of a fault, by seed."""

    commit: str = ""
    day: str = ""
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    """Why a person was needed, by seed."""


class Results:
    """The results, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.by_name = self._read()

    def _read(self) -> dict[str, Result]:
        found = json.loads(self._path.read_text(encoding="utf-8")) if self._path.exists() else {}
        return {name: _decoded(result) for name, result in found.items()}

    def has(self, fault: Fault, seed: int) -> bool:
        """Return whether there is a verdict of this commit."""
        result = self.by_name.get(fault.name)
        return result is not None and result.commit == git_commit() and str(seed) in result.verdicts

    def add(self, fault: Fault, seed: str, verdict: Verdict, note: str = "") -> None:
        """Add the verdict of a run, and write the file. The results of another commit are dropped."""
        commit, self.by_name = git_commit(), self._read()  # another process may have added some
        result = self.by_name.get(fault.name)
        if result is None or result.commit != commit:
            result = self.by_name[fault.name] = Result(commit, datetime.now(UTC).date().isoformat())
        result.verdicts[seed] = verdict
        result.notes[seed] = note
        self._path.parent.mkdir(parents=True, exist_ok=True)
        encoded = {name: one.__dict__ for name, one in self.by_name.items()}
        self._path.write_text(json.dumps(encoded, indent=1), encoding="utf-8")

    def table(self) -> Table:
        """Return the table for a terminal."""
        table = Table(*COLUMNS)
        for fault in FAULTS:
            if result := self.by_name.get(fault.name):
                is_right = all(verdict.is_right for verdict in result.verdicts.values())
                table.add_row(*_cells(fault, result), style="" if is_right else "bold red")
        return table

    def page(self, head: str) -> str:
        """Return the page."""
        done = [fault for fault in FAULTS if fault.name in self.by_name]
        left = [fault for fault in FAULTS if fault.name not in self.by_name]
        columns = (*COLUMNS, "date", "commit")
        rows = [columns, ("---",) * len(columns)]
        rows += [(*_cells(fault, result := self.by_name[fault.name]), result.day, result.commit) for fault in done]
        notes = [
            f"- {fault.name}, seed {seed}: {note}"
            for fault in done
            for seed, note in self.by_name[fault.name].notes.items()
            if note
        ]
        parts = [head + _rows(rows)]
        if notes:
            parts.append("## Notes\n\n" + "\n".join(notes))
        parts.append(FOUND.format(found=found_by_the_simulator(FOUND_SCRIPTS)))
        if SOAKED.exists():
            parts.append(soak_section(SOAKED))
        parts.append("## Not run\n\n" + "\n".join(f"- {line}" for line in (*(fault.name for fault in left), *NOT_RUN)))
        return "\n\n".join(parts) + "\n"


def soak_section(figures: Path) -> str:
    """Return what the figures of a soak say of each eighth of its time."""
    rows = list(csv.DictReader(figures.read_text(encoding="utf-8").splitlines()))
    length = math.ceil(len(rows) / PERIODS)
    columns = ("minutes", "events", "lost", "counted twice", "answers missing", "reads backwards", "expired but served",
        "people needed", *SOAK_AT_THE_END, *SOAK_MEDIANS)  # fmt: skip
    table = [columns, ("---",) * len(columns)]
    for begin in range(0, len(rows), length):
        period = rows[begin : begin + length]
        sums = (sum(int(row[name]) for row in period) for name in SOAK_SUMS)
        last = [sum(float(value) for name, value in period[-1].items() if name.startswith(prefix))
            for prefix in SOAK_AT_THE_END.values()]  # fmt: skip
        medians = [statistics.median(float(row[name]) for row in period) for name in SOAK_MEDIANS.values()]
        figures_of = (f"{number:,.0f}" for number in (*sums, *last, *medians))
        table.append((f"{begin} to {begin + len(period) - 1}", *figures_of))
    disturbed = Counter(row["disturbed"] for row in rows if row["disturbed"])
    named = ", ".join(f"{name} ({count})" for name, count in sorted(disturbed.items()))
    text = SOAK.format(
        minutes=len(rows), rate=SOAK_TRAFFIC.rate, meters=SOAK_TRAFFIC.meters, disturbed=named, note=SOAK_NOTE
    )
    return text + _rows(table)


def found_by_the_simulator(modules: Iterable[Path]) -> str:
    """Return a list of the seeds in test modules, each with the cause in the comment of its test, if it is a defect."""
    source = "\n".join(module.read_text(encoding="utf-8") for module in modules)
    found = re.findall(r"^def test_seed_(\d+)\(\) -> None:\n((?:    # .+\n)+)", source, re.MULTILINE)
    causes = ((seed, " ".join(comment.replace("    # ", "").splitlines())) for seed, comment in found)
    return "\n".join(f"- {seed}: {cause}" for seed, cause in causes if not cause.startswith("No defect"))


NOT_RUN = ("22 has no row of its own: it is declared, and refused, as 21.",)


PRODUCT = ("contracts", "services", "spark_app", "stateloop")


def git_commit() -> str:
    """Return the short name of the last commit that changed the product."""
    command = ["git", "log", "-1", "--format=%h", "--", *PRODUCT]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _decoded(result: dict[str, Any]) -> Result:
    verdicts = {seed: Verdict(*verdict) for seed, verdict in result["verdicts"].items()}
    return Result(**(result | {"verdicts": verdicts}))


def _cells(fault: Fault, result: Result) -> tuple[str, ...]:
    verdicts = result.verdicts.values()
    if fault.tests:
        failed = sum(verdict.people for verdict in verdicts)
        return fault.name, BY_TEST, *("" for _ in COLUMNS[2:-1]), "failed" if failed else "passed"
    *counts, stall_s, people = (column for column in zip(*verdicts, strict=True))
    stall = f"{max(stall_s):.1f} s"
    return fault.name, str(len(verdicts)), *(str(sum(count)) for count in counts), stall, str(sum(people))


def _rows(rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
