"""Builds the first state from files with events of the past: `stateloop bootstrap`."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from rich.console import Console

from contracts.errors import StateloopError
from contracts.settings import read
from services.cli import rebuild
from services.cli.spark import add_application, selected, spark_session
from services.runtime.broker_check import require_broker
from spark_app.lifecycle.bootstrap import Bootstrap
from spark_app.run.supervise import first_line
from spark_app.settings import JobSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_app.lifecycle.history import HistoryFile
    from spark_app.lifecycle.history_writer import HistoryPosition


def main(given: Sequence[str]) -> int:
    """Run the command: 0. Return 1 after an error, which is printed in one line."""
    options, console = _options(given), Console(highlight=False, soft_wrap=True)
    try:
        settings = read(JobSettings)
        require_broker(settings)
        with spark_session(settings) as spark:
            each = selected(settings, options.application)
            run(console, [Bootstrap(spark, application, own) for application, own in each], options.paths)
    except StateloopError as error:
        print(f"stateloop bootstrap: {error}", file=sys.stderr)
        return 1
    except PySparkException as error:
        print(f"stateloop bootstrap: {first_line(str(error))}", file=sys.stderr)
        return 1
    return 0


def run(console: Console, bootstraps: Sequence[Bootstrap], paths: Sequence[str]) -> None:
    """Write the events, build the states from them, and activate these for the job.

    Several applications may read one topic, which must keep the events until all of them have a state.
    """

    def report(file: HistoryFile, position: HistoryPosition) -> None:
        done = f"file {position.file + 1} of {position.of}, {position.row:,} rows"
        console.print(f"{file.path}: {done}, {position.refused:,} dead letters so far", markup=False)

    positions = [one.write(paths, report) for one in bootstraps]
    rebuilds = [one.rebuild() for one in bootstraps]
    plans = [one.plan(_now_ms()) for one in rebuilds]
    for one, plan in zip(rebuilds, plans, strict=True):
        rebuild.build(console, one, plan)
    for bootstrap, position in zip(bootstraps, positions, strict=True):
        bootstrap.finish(position)
    for one, plan in zip(rebuilds, plans, strict=True):
        one.activate(plan.generation, _now_ms())
    console.print("The state is complete: start the job, which publishes each window once.")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _options(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="stateloop bootstrap",
        description="Write events of the past to the topic of events, and make the state of them in "
        "STATELOOP_CHECKPOINT, before the first start of the job. An interrupted bootstrap continues with the same "
        "command.",
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file of Parquet or JSON lines, or a folder of them")
    add_application(parser)
    return parser.parse_args(given)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
