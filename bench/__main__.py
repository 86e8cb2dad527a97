"""Compare job, worker and query service with their peers, answers checked: `make bench`, `python -m bench --help`."""

import argparse
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from bench import targets
from bench.catalogue import FULL, QUICK
from bench.harness import report
from bench.harness.broker import broker
from bench.harness.errors import BenchError
from bench.harness.jobs import CHECKOUT, MARK
from bench.harness.machine import wake_up_us
from bench.harness.measure import Plan
from bench.harness.progress import Display
from bench.harness.results import RunResult, Session, kept
from bench.harness.rounds import Rounds, RoundSelection

FOLDER = CHECKOUT / ".stateloop" / "bench"
RESULTS = FOLDER / "results.jsonl"
MEASURES = [measure.name for measure in FULL.measures]
JOBS = list(dict.fromkeys(job.name for measure in FULL.measures for job in measure.jobs))
INTERRUPTED = 130  # the exit code of a shell after Ctrl-C


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command_line = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    command_line.add_argument("--quick", action="store_true", help="small and once each: to try, not to compare")
    command_line.add_argument("--report", action="store_true", help="only print what was last kept of each measure")
    command_line.add_argument("--measures", nargs="+", choices=MEASURES, help="only these")
    command_line.add_argument("--jobs", nargs="+", choices=JOBS, help="instead of the usual ones")
    command_line.add_argument(
        "--against", type=checkout, metavar="FOLDER", help="another checkout: its job is named before"
    )
    command_line.add_argument("--runs", type=int, help=f"how often each job is measured ({FULL.runs})")
    command_line.add_argument("--events", type=int, help="events of a drain, snapshots of a worker's, or keys")
    command_line.add_argument("--seconds", type=int, help="how long latency is measured")
    return command_line


def checkout(path: str) -> Path:
    """The folder of another checkout. Raises ArgumentTypeError."""
    folder = Path(path).resolve()
    if not (folder / MARK).is_file():
        raise argparse.ArgumentTypeError(f"{path} is no checkout of Stateloop: it has no {MARK}")
    return folder


def plan(arguments: argparse.Namespace) -> Plan:
    """The sizes of a full or a quick benchmark, as far as the command line gives no others."""
    sizes = (QUICK if arguments.quick else FULL).sized(arguments.events, arguments.seconds)
    sizes = sizes.only(arguments.measures or MEASURES)
    return replace(sizes, runs=arguments.runs or sizes.runs)


def selection(arguments: argparse.Namespace) -> RoundSelection:
    """The jobs that the command line selects."""
    return RoundSelection(frozenset(arguments.jobs or ()), arguments.against)


def measure(sizes: Plan, selected: RoundSelection, console: Console) -> list[RunResult]:
    """Measure everything, and keep it. Raises BenchError."""
    against = str(selected.against) if selected.against else None
    session = Session(datetime.now(UTC).isoformat(timespec="seconds"), wake_up_us(), against=against)
    rounds = Rounds(sizes, selected, RESULTS, session)
    rounds.prepare(console.print)
    shutil.rmtree(FOLDER / "run", ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = RESULTS.relative_to(CHECKOUT)
    console.print(f"{len(rounds)} runs on {session}; results are appended to {file} as they come", highlight=False)
    with broker(FOLDER) as site, Display(console, len(rounds)) as display:
        return rounds.measure(site, display)


def exit_code(results: Sequence[RunResult], console: Console) -> int:
    """0 if each run gave exactly one correct snapshot for each event, and the targets that bind are met.

    A fast wrong answer is a failed run.
    """
    failed = [result for result in results if not result.right]
    for result in failed:
        console.print(report.described(result), style="red", highlight=False, markup=False, soft_wrap=True)
    return 1 if failed or targets.missed(results) or not results else 0


def interrupt(*_: object) -> None:
    """Stop once: a second signal would interrupt the shutdown of the processes."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> int:
    """Run it. 1 for a failed run, a missed target, or when something is missing, with a line with the remedy."""
    arguments = parser().parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    console = Console(width=None if sys.stdout.isatty() else 160)
    try:
        results = kept(RESULTS) if arguments.report else measure(plan(arguments), selection(arguments), console)
    except BenchError as error:
        print(f"stateloop bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    report.show(results, console)
    targets.show(results, console)
    return exit_code(results, console)


if __name__ == "__main__":
    sys.exit(main())
