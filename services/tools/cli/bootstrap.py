"""Builds the first state from files with events of the past: `stateloop bootstrap`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from contracts.settings import read
from services.runtime.kafka.broker_check import require_broker
from services.runtime.terminal import TerminalConsole
from services.tools.cli import rebuild
from services.tools.cli.spark import selected, spark_session
from spark_app.lifecycle.bootstrap import Bootstrap
from spark_app.settings import JobSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from spark_app.lifecycle.history import HistoryFile
    from spark_app.lifecycle.history_writer import HistoryPosition


def bootstrap(paths: Sequence[str], name: str | None) -> None:
    """Build the states of all applications, or of the named one. Raises StateloopError, CommandError."""
    console = TerminalConsole(highlight=False, soft_wrap=True)
    settings = read(JobSettings)
    require_broker(settings)
    with spark_session(settings) as spark:
        run(console, [Bootstrap(spark, application, own, paths) for application, own in selected(settings, name)])


def run(console: Console, each: Sequence[Bootstrap]) -> None:
    """Write the events, build the states from them, and activate these for the job.

    Several applications may read one topic, which must keep the events until all of them have a state. A process that
    was killed may have activated some.
    """
    for bootstrap in each:
        if bootstrap.is_done:
            console.print(f"{bootstrap.name} has its state already.", markup=False)
    bootstraps = [bootstrap for bootstrap in each if not bootstrap.is_done]

    def report(file: HistoryFile, position: HistoryPosition) -> None:
        done = f"file {position.file + 1} of {position.of}, {position.row:,} rows"
        console.print(f"{file.path}: {done}, {position.refused:,} dead letters so far", markup=False)

    positions = [bootstrap.write(report) for bootstrap in bootstraps]
    rebuilds = [bootstrap.rebuild() for bootstrap in bootstraps]
    plans = [state_rebuild.plan(_now_ms()) for state_rebuild in rebuilds]
    for state_rebuild, plan in zip(rebuilds, plans, strict=True):
        rebuild.build(console, state_rebuild, plan)
    for bootstrap, position in zip(bootstraps, positions, strict=True):
        bootstrap.finish(position)
    for bootstrap, state_rebuild, plan in zip(bootstraps, rebuilds, plans, strict=True):
        bootstrap.activate(state_rebuild, plan.generation, _now_ms())
    console.print("The state is complete: start the job, which publishes each window once.")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
