"""Measure our job beside others: `make bench`, or `python -m bench --help`."""

import argparse
import dataclasses
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.harness.broker import broker
from bench.harness.errors import BenchError
from bench.harness.jobs import JOBS, MEASURED, REFERENCE, Job
from bench.harness.plan import CHECKOUT, FULL, QUICK, Plan
from bench.harness.progress import Display
from bench.harness.report import TARGETS, Result, Target, show
from bench.harness.rounds import Rounds

FOLDER = CHECKOUT / ".stateloop" / "bench"
INTERRUPTED = 130  # as a shell tells Ctrl-C


def plan(arguments: argparse.Namespace) -> Plan:
    """The sizes: those of a full or a quick benchmark, and what the command line says otherwise."""
    said = {name: value for name, value in vars(arguments).items() if name in FULL.__dict__ and value is not None}
    return dataclasses.replace(QUICK if arguments.quick else FULL, **said)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    found.add_argument("--quick", action="store_true", help="small and once each, in 4 minutes: to try, not to compare")
    for name, what in (
        ("runs", "how often each job is measured"),
        ("events", "events of the drain"),
        ("devices", "devices that send them"),
        ("rate", "events a second while latency is measured"),
        ("batch-s", "length of a batch, in seconds"),
    ):
        found.add_argument(f"--{name}", type=int, help=what)
    found.add_argument("--jobs", nargs="+", choices=[job.name for job in JOBS], help="only these")
    return found


def measure(sizes: Plan, jobs: Sequence[Job], folder: Path, console: Console) -> int:
    """Measure everything, and print it: 0, or 1 if a run's answer was wrong, or a target that binds was missed."""
    file = folder / "results.jsonl"
    shutil.rmtree(folder / "run", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    rounds = Rounds(sizes, jobs, file)
    with broker(folder, sys.executable) as site, Display(console, rounds.expected) as display:
        results = rounds.measure(site, display)
    show(results, console)
    console.print(f"All figures are in {file.relative_to(CHECKOUT)}", highlight=False)
    return exit_code(results, console, TARGETS if full(sizes, jobs) else ())


def full(sizes: Plan, jobs: Sequence[Job]) -> bool:
    """Whether it is the benchmark that the targets are set for: of its sizes, however often, and with both jobs."""
    return dataclasses.replace(sizes, runs=FULL.runs) == FULL and all(job in jobs for job in (MEASURED, REFERENCE))


def exit_code(results: Sequence[Result], console: Console, targets: Sequence[Target] = ()) -> int:
    """0 if each run gave exactly one correct snapshot for each event, and these targets are met.

    A fast wrong answer is a failed run.
    """
    failed = [result for result in results if not result.right]
    for result in failed:
        console.print(str(result), style="red", highlight=False, markup=False, soft_wrap=True)
    missed = [target for target in targets if not target.outcome(results)[0]]
    return 1 if failed or missed or not results else 0


def interrupt(*_: object) -> None:
    """End it: once, because what is asked twice would break off the stopping of what was started."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> int:
    """Run it. 1 for a failed run, a missed target, or when something is missing, with a line that says what to do."""
    arguments = parser().parse_args()
    jobs = [job for job in JOBS if arguments.jobs is None or job.name in arguments.jobs]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    console = Console(width=None if sys.stdout.isatty() else 160)
    try:
        return measure(plan(arguments), jobs, FOLDER, console)
    except BenchError as error:
        print(f"stateloop bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
