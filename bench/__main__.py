"""Compare job, worker and query service with their peers, answers checked: `make bench`, `python -m bench --help`."""

import argparse
import dataclasses
import shutil
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from rich.console import Console

from bench.alerts.engines import ALERT_JOBS
from bench.coverage.engines import COVERAGE_JOBS, COVERAGE_SERVICE
from bench.enrichment.workers import WORKERS
from bench.harness.broker import broker
from bench.harness.errors import BenchError
from bench.harness.jobs import JOBS, USUAL, Job
from bench.harness.machine import wake_up_us
from bench.harness.plan import CHECKOUT, FULL, QUICK, Plan
from bench.harness.progress import Display
from bench.harness.report import described, show
from bench.harness.results import RunResult, Session, kept
from bench.harness.rounds import Rounds
from bench.harness.targets import missed
from bench.peers.build import build
from bench.query.servers import QUERIES
from bench.raw.jobs import RAW_JOBS
from bench.vitals.jobs import VITALS_JOB
from bench.windows.engines import WINDOW_JOBS

FOLDER = CHECKOUT / ".stateloop" / "bench"
RESULTS = FOLDER / "results.jsonl"
VITAL_JOBS = (*RAW_JOBS, VITALS_JOB, *COVERAGE_JOBS, COVERAGE_SERVICE)
ALL = (*JOBS, *WINDOW_JOBS, *ALERT_JOBS, *VITAL_JOBS, *WORKERS, *QUERIES)
NAMES = list(dict.fromkeys(job.name for job in ALL))
INTERRUPTED = 130  # the exit code of a shell after Ctrl-C


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    found.add_argument("--quick", action="store_true", help="small and once each: to try, not to compare")
    found.add_argument("--report", action="store_true", help="only print what was last kept of each measure")
    found.add_argument("--measures", nargs="+", choices=[one.name for one in FULL.measures], help="only these")
    found.add_argument("--jobs", nargs="+", choices=NAMES, help="instead of the usual ones")
    found.add_argument("--runs", type=int, help=f"how often each job is measured ({FULL.runs})")
    found.add_argument("--events", type=int, help="events of a drain, snapshots of a worker's, or keys")
    found.add_argument("--seconds", type=int, help="how long latency is measured")
    found.add_argument("--batch-s", type=int, help="length of a batch, in seconds, instead of each job's own")
    return found


def plan(arguments: argparse.Namespace) -> Plan:
    """The sizes: those of a full or a quick benchmark, as far as the command line gives no others."""
    sizes = (QUICK if arguments.quick else FULL).sized(arguments.events, arguments.seconds)
    options = {name: getattr(arguments, name) for name in ("runs", "batch_s") if getattr(arguments, name)}
    return dataclasses.replace(sizes.only(arguments.measures) if arguments.measures else sizes, **options)


def chosen(arguments: argparse.Namespace) -> tuple[Job, ...]:
    """The jobs and workers, in the order of ALL."""
    return (
        tuple(job for job in ALL if job.name in arguments.jobs)
        if arguments.jobs
        else (*USUAL, *WINDOW_JOBS, *ALERT_JOBS, *VITAL_JOBS, *WORKERS, *QUERIES)
    )


def measure(sizes: Plan, jobs: Sequence[Job], console: Console) -> list[RunResult]:
    """Measure everything, and keep it. Raises BenchError."""
    for job in jobs:
        if job.peer:
            build(job.peer, console.print)
    shutil.rmtree(FOLDER / "run", ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    session = Session(datetime.now(UTC).isoformat(timespec="seconds"), wake_up_us())
    rounds = Rounds(sizes, jobs, RESULTS, session)
    about, file = timedelta(minutes=round(rounds.expected / 60)), RESULTS.relative_to(CHECKOUT)
    console.print(f"About {about}, on {session}; results are appended to {file} as they come", highlight=False)
    with broker(FOLDER, sys.executable) as site, Display(console, rounds.expected) as display:
        return rounds.measure(site, display)


def exit_code(results: Sequence[RunResult], console: Console) -> int:
    """0 if each run gave exactly one correct snapshot for each event, and the targets that bind are met.

    A fast wrong answer is a failed run.
    """
    failed = [result for result in results if not result.right]
    for result in failed:
        console.print(described(result), style="red", highlight=False, markup=False, soft_wrap=True)
    return 1 if failed or missed(results) or not results else 0


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
        results = kept(RESULTS) if arguments.report else measure(plan(arguments), chosen(arguments), console)
    except BenchError as error:
        print(f"stateloop bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    show(results, console)
    return exit_code(results, console)


if __name__ == "__main__":
    sys.exit(main())
