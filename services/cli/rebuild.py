"""Builds the state anew from the topics, beside the running job, and switches to it: `stateloop rebuild`."""

from __future__ import annotations

import argparse
import sys
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from contracts.errors import StateloopError
from contracts.settings import read
from services.cli.spark import add_application, selected, spark_session
from spark_app.rebuild import Rebuild
from spark_app.settings import JobSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.streaming.listener import StreamingQueryProgress

    from spark_app.rebuild import RebuildPlan

RECORDS_PER_S = 20_000
"""A slow builder's rate: the estimate before one was measured."""


def main(given: Sequence[str]) -> int:
    """Run the command: 0. Return 1 after an error, which is printed in one line, or a refusal."""
    options, console = _options(given), Console(highlight=False, soft_wrap=True)
    try:
        settings = read(JobSettings)
        with spark_session(settings) as spark:
            each = selected(settings, options.application)
            done = [run(console, Rebuild(spark, application, own), options) for application, own in each]
    except StateloopError as error:
        print(f"stateloop rebuild: {error}", file=sys.stderr)
        return 1
    return int(not all(done))


def run(console: Console, rebuild: Rebuild, options: argparse.Namespace) -> bool:
    """Rebuild one application; return whether there was no reason to refuse it."""
    if options.rollback:
        _report(console, rebuild.roll_back(_now_ms()).generation)
        return True
    plan = rebuild.plan(_now_ms())
    _describe(console, plan)
    if options.dry_run:
        return True
    if plan.missing and not options.accept_missing:
        console.print("Run it with --accept-missing to build the state without them.")
        return False
    build(console, rebuild, plan)
    _report(console, rebuild.activate(plan.generation, _now_ms()).generation)
    return True


def build(console: Console, rebuild: Rebuild, plan: RebuildPlan) -> None:
    """Build the generation, with a progress bar on a terminal, and a line for each batch elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("records", total=plan.records)
        done = 0

        def report(batch: StreamingQueryProgress) -> None:
            nonlocal done
            done += batch.numInputRows
            progress.update(task, completed=done, total=max(plan.records, done))
            if not console.is_terminal:
                console.print(f"{done} of {plan.records} records")

        rebuild.build(plan, _now_ms(), report)


def _describe(console: Console, plan: RebuildPlan) -> None:
    for difference in plan.differences:
        console.print(f"- {difference}", markup=False)
    about = timedelta(seconds=round(plan.records / RECORDS_PER_S))
    verb = "continues" if plan.is_begun else "builds"
    console.print(f"This {verb} {plan.generation} from {plan.records} records, in about {about} or less.")
    for one in plan.missing:
        console.print(f"! {one}", style="yellow", markup=False)


def _report(console: Console, generation: str) -> None:
    console.print(
        f"The active generation is {generation} now. A running job stops: start the job of this release, which "
        "publishes each window once. `stateloop rebuild --rollback` goes back."
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _options(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="stateloop rebuild",
        description="Build the state of STATELOOP_CHECKPOINT anew from the topics, for a changed application, another "
        "STATELOOP_STATE_PARTITIONS, or a lost checkpoint. The running job goes on until the new state is complete.",
    )
    parser.add_argument("--dry-run", action="store_true", help="only report what would be done")
    parser.add_argument("--accept-missing", action="store_true", help="build also from topics that lack records")
    parser.add_argument("--rollback", action="store_true", help="go back to the generation that was active before")
    add_application(parser)
    return parser.parse_args(given)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
