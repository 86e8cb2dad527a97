"""Runs the faults on a loop of real parts: `python -m tests.faults`, or `make faults`."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live

from tests.e2e.launched import CHECKOUT
from tests.faults.catalogue import FAULTS, Fault
from tests.faults.ledgers import Verdict
from tests.faults.load import USUAL
from tests.faults.report import HEAD, Results
from tests.faults.soak import soak
from tests.faults.stage import PATIENCE_S, PersonNeededError, Stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

RESULTS = Path("artifacts/faults.json")
FOLDER = Path(".stateloop/faults")
WIDTH = None if sys.stdout.isatty() else 160
Run = tuple[Fault, int]


def main() -> int:
    """Return 1 if a promise is broken."""
    options = arguments()
    results = Results(RESULTS)
    numbers = options.only or range(len(FAULTS))
    chosen = [fault for number in numbers for fault in FAULTS if fault.number == number]
    if options.soak:
        soak(options.folder, options.hours or 1.0, options.kill_every, options.out)
    elif options.random:
        seed = options.seed or random.randrange(1 << 31)
        print(f"--random --seed {seed}")
        run(random_runs(chosen, seed, options.hours or 1.0), results, options.folder)
    elif options.seeds:
        run_tests([fault for fault in chosen if fault.tests and not options.loop_only], results)
        runs = [(fault, seed) for seed in options.seeds for fault in chosen if not fault.tests]
        left = [(fault, seed) for fault, seed in runs if not (options.resume and results.has(fault, seed))]
        run(within(left, options.hours), results, options.folder)
    if options.write:
        head = HEAD.format(rate=USUAL.rate, meters=USUAL.meters, patience=int(PATIENCE_S))
        options.write.write_text(results.page(head), encoding="utf-8")
    verdicts = [verdict for result in results.by_name.values() for verdict in result.verdicts.values()]
    return 0 if all(verdict.is_right for verdict in verdicts) else 1


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--only", type=int, nargs="+", help="the numbers of the faults, in their order")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3], help="none: only --write the results so far")
    parser.add_argument("--resume", action="store_true", help="leave out the runs that artifacts/faults.json has")
    parser.add_argument("--loop-only", action="store_true", help="no fault that tests prove")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of data and logs")
    parser.add_argument("--write", type=Path, help="the page to write, such as docs/reliability.md")
    parser.add_argument("--random", action="store_true", help="faults in random order, of a seed that is printed")
    parser.add_argument("--seed", type=int, help="of --random")
    parser.add_argument("--hours", type=float, help="no further run after this time (--random, --soak: 1)")
    parser.add_argument("--soak", action="store_true", help="no fault but kills and rebalances; figures each minute")
    parser.add_argument("--kill-every", type=int, default=60, help="the minutes between two kills of --soak")
    parser.add_argument("--out", type=Path, default=Path("artifacts/soak.csv"), help="the figures of --soak, as CSV")
    return parser.parse_args()


def run(runs: Iterable[Run], results: Results, folder: Path) -> None:
    """Run faults on one loop, and on a new one after a fault that it did not survive."""
    stage: Stage | None = None
    with Live(console=Console(width=WIDTH), auto_refresh=False) as live, ExitStack() as running:
        for fault, seed in runs:
            if stage is None or stage.needs != fault.needs:
                running.close()
                stage = running.enter_context(Stage(folder, fault.needs))
            verdict, note = judged(stage, fault, seed)
            results.add(fault, str(seed), verdict, note)
            live.console.print(f"{fault.name}, seed {seed}: {verdict} {note[-300:]}")
            live.update(results.table(), refresh=True)
            if verdict.people:
                keep_logs(folder, f"{fault.number}-{seed}")
                stage = None


def keep_logs(folder: Path, name: str) -> None:
    """Copy the logs of a loop, which the next loop deletes, into a folder beside."""
    kept = folder.with_name(f"{folder.name}-failed") / name
    shutil.copytree(folder / "logs", kept, dirs_exist_ok=True)
    shutil.copy(folder / "launcher.log", kept)


def judged(stage: Stage, fault: Fault, seed: int) -> tuple[Verdict, str]:
    """Run a fault; return the verdict, and why a person was needed."""
    try:
        verdict = stage.run(fault, seed)
        return verdict, last_problems(stage.folder) if verdict.people else ""
    except (PersonNeededError, TimeoutError) as error:
        return Verdict(people=1), str(error)


def last_problems(folder: Path) -> str:
    """Return the last warning of the job, and of the launcher."""
    logs = (folder / "logs" / "job.log", folder / "launcher.log")
    job, launcher = (log.read_text(encoding="utf-8", errors="replace").splitlines() for log in logs)
    kinds = '{"job": "warning"', '{"job": "failed"'
    warnings = [json.loads(line)["problem"] for line in job if line.startswith(kinds)] or ["nothing"]
    restarts = [line.removeprefix("! ") for line in launcher if line.startswith("! ")] or ["nothing"]
    return f"the last warning of the job: {warnings[-1]}; of the launcher: {restarts[-1]}"


def run_tests(faults: Iterable[Fault], results: Results) -> None:
    """Run the tests of faults."""
    for fault in faults:
        command = [sys.executable, "-m", "pytest", "-n0", "-q", *fault.tests]
        code = subprocess.run(command, cwd=CHECKOUT, check=False).returncode
        results.add(fault, "tests", Verdict(people=int(code != 0)), "its tests failed" if code else "")


def random_runs(faults: list[Fault], seed: int, hours: float) -> Iterator[Run]:
    """Return random faults until the time is over."""
    chance = random.Random(seed)
    choice = [fault for fault in faults if not (fault.tests or fault.needs)]
    return within(((chance.choice(choice), chance.randrange(1000)) for _ in itertools.count()), hours)


def within(runs: Iterable[Run], hours: float | None) -> Iterator[Run]:
    """Return the runs that begin within this time."""
    end = time.monotonic() + (math.inf if hours is None else hours * 3600)
    return itertools.takewhile(lambda _: time.monotonic() < end, runs)


if __name__ == "__main__":
    sys.exit(main())
