"""Profile the job while it drains a topic: `make profile`, or `python -m bench.profile --help`."""

import argparse
import dataclasses
import shutil
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.harness import topics
from bench.harness.broker import broker
from bench.harness.drain import Drain
from bench.harness.errors import BenchError
from bench.harness.headings import line
from bench.harness.jobs import EXACT, STATELOOP, Job
from bench.harness.plan import CHECKOUT, BacklogPlan, Plan, Site
from bench.harness.progress import Display
from bench.harness.results import RunResult
from bench.profile.agent import library, option
from bench.profile.errors import NoSamplesError
from bench.profile.parts import shares
from bench.windows.drain import WindowDrain
from bench.windows.engines import ENGINES, STATELOOP_BATCH, STATELOOP_EVENT
from bench.windows.measures import WindowCounts

FOLDER = CHECKOUT / ".stateloop" / "profile"
SAMPLES = FOLDER / "samples"
JOBS = {job.name: job for job in (STATELOOP, EXACT)}
WINDOWS = {"windows": STATELOOP_EVENT.job, "windows-batch": STATELOOP_BATCH.job}
EXPECTED_S = 120.0
HELP = "exact removes copies as well; windows counts each device's events in each hour"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    found.add_argument("--events", type=int, default=3_000_000, help="how many it drains (3,000,000)")
    found.add_argument("--devices", type=int, default=100_000, help="of how many devices (100,000)")
    found.add_argument("--job", choices=[*JOBS, *WINDOWS], default=STATELOOP.name, help=HELP)
    return found


def profile(backlog: BacklogPlan | WindowCounts, job: Job, console: Console) -> tuple[RunResult, Path]:
    """Drain once under the profiler: the run's result, and the file of its samples. Raises BenchError."""
    agent = library(console.print)
    for folder in (FOLDER / "run", SAMPLES):
        shutil.rmtree(folder, ignore_errors=True)
    SAMPLES.mkdir(parents=True)
    sampled = dataclasses.replace(job, environment=job.environment | {"JDK_JAVA_OPTIONS": option(agent, SAMPLES)})
    with broker(FOLDER, sys.executable) as site, Display(console, EXPECTED_S) as display:
        display.begin(f"{backlog}, under the profiler", EXPECTED_S)
        result = _drain(backlog, site).measure(sampled, 1, display.show)
        return result, _largest(site)


def _drain(backlog: BacklogPlan | WindowCounts, site: Site) -> Drain | WindowDrain:
    plan = Plan(measures=(backlog,))
    if isinstance(backlog, WindowCounts):
        return WindowDrain(ENGINES, backlog, plan, site)
    topics.renew(site.boot, topics.INPUTS)
    return Drain(backlog, plan, site)


def table(found: dict[str, float], title: str) -> Table:
    """The parts and their shares of the CPU."""
    drawn = Table(title=title, title_justify="left")
    drawn.add_column("")
    drawn.add_column("share of the CPU", justify="right")
    for name, share in found.items():
        drawn.add_row(name, f"{share:.1%}")
    return drawn


def _largest(site: Site) -> Path:
    """Return the samples of the driver's JVM. Spark starts another one, which only prints the command of this one."""
    if not (files := sorted(SAMPLES.glob("*.collapsed"), key=lambda file: file.stat().st_size)):
        raise NoSamplesError(site.folder / "log")
    return files[-1]


def main() -> int:
    """Profile, and print the table: 0, or 1 and a line with the remedy."""
    arguments, console = parser().parse_args(), Console(width=None if sys.stdout.isatty() else 120)
    sort = WindowCounts if arguments.job in WINDOWS else BacklogPlan
    backlog = sort("profile", arguments.events, arguments.devices)
    try:
        result, samples = profile(backlog, (JOBS | WINDOWS)[arguments.job], console)
    except BenchError as error:
        print(f"stateloop profile: {error}", file=sys.stderr)
        return 1
    with samples.open(encoding="utf-8") as lines:
        console.print(table(shares(lines), f"{arguments.job}, {backlog}"))
    console.print(line(result.figures), highlight=False)
    console.print(f"Every stack is in {samples.relative_to(CHECKOUT)}, as flame graphs are made from", highlight=False)
    return 0 if result.right else 1


if __name__ == "__main__":
    sys.exit(main())
