"""Builds the state anew from the topics while the job runs, and switches to it: `stateloop rebuild`."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from contracts.model.suite import load_suite
from contracts.settings import read
from services.runtime.command_line import ExitCode
from services.runtime.kafka.broker_check import require_broker
from services.runtime.kafka.clients import KafkaClients
from services.runtime.terminal import TerminalConsole
from services.tools.cli.spark import selected, spark_session
from services.tools.topics.growth import PartitionGrowth
from spark_app.checkpoint.generations import described
from spark_app.lifecycle.rebuild import Rebuild
from spark_app.settings import JobSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from rich.console import Console

    from contracts import Application
    from services.tools.cli.commands.rebuild import RebuildOptions
    from spark_app.lifecycle.rebuild import RebuildPlan

SLOW, FAST = 1_000, 20_000
"""The rates of builders, in records a second: the estimate before one was measured."""


def rebuild(options: RebuildOptions) -> ExitCode:
    """Build and activate the states. Return ERROR after a refusal. Raises StateloopError, CommandError."""
    console = TerminalConsole(highlight=False, soft_wrap=True)
    settings = read(JobSettings)
    require_broker(settings)
    with spark_session(settings) as spark:
        each = [
            ApplicationRebuild(console, spark, application, own, options)
            for application, own in selected(settings, options.application)
        ]
        built = [application_rebuild for application_rebuild in each if application_rebuild.prepare()]
        if not options.dry_run:
            names = [application_rebuild.name for application_rebuild in each]
            switch(built, names, options, lambda line: console.print(line, markup=False))
            if options.watch:
                for application_rebuild in built:
                    application_rebuild.watch()
    return ExitCode.ERROR if len(built) < len(each) else ExitCode.OK


def switch(
    built: Sequence[ApplicationRebuild], names: Sequence[str], options: RebuildOptions, report: Callable[[str], object]
) -> None:
    """Switch the applications that share events together. Report what follows, also when one of them fails to switch.

    `names` are those of all applications. Raises StateloopError, CommandError.
    """
    switched = list[str]()
    try:
        for application_rebuild in built:
            application_rebuild.switch()
            switched.append(application_rebuild.name)
    finally:
        left = [name for name in names if name not in switched]
        if switched and left:
            report(repetition(switched, left))
        if switched:
            report(next_steps(options))


class ApplicationRebuild:
    """The rebuild of one application, with its output."""

    def __init__(
        self,
        console: Console,
        spark: SparkSession,
        application: Application,
        settings: JobSettings,
        options: RebuildOptions,
    ) -> None:
        self.name = application.name
        self._console = console
        self._application = application
        self._settings = settings
        self._options = options
        self._growth = PartitionGrowth(application, KafkaClients(settings.client()), settings.kafka, options.partitions)
        self._rebuild = Rebuild(spark, application, settings, self._growth.partitions)
        self._generation = ""

    def prepare(self) -> bool:
        """Build a generation, or find the former one; return False if there is a reason to refuse the switch."""
        if self._options.rollback:
            self._generation = self._rebuild.former()
            self._print(f"{self.name} goes back to {described(self._generation)}.")
            return True
        return self.build()

    def build(self) -> bool:
        """Build a generation; return False if there is a reason to refuse that."""
        plan = self._rebuild.plan(_now_ms())
        _describe(self._console, plan)
        if missing := self._growth.missing:
            listed = ", ".join(f"{name} (now {count})" for name, count in missing.items())
            self._print(f"These topics get {self._growth.partitions} partitions: {listed}.")
        if self._options.dry_run:
            return True
        if plan.missing and not self._options.accept_missing:
            self._print("Run it with --accept-missing to build the state without the windows that began before.")
            return False
        build(self._console, self._rebuild, plan)
        self._generation = plan.generation
        return True

    def switch(self) -> None:
        """Stop the running job, and activate the new generation, or the former one, for the next job."""
        if self._options.rollback:
            self._activation, self._handover = self._rebuild.roll_back(self._generation, _now_ms())
        else:
            self._activation, self._handover = self._rebuild.activate(self._generation, _now_ms(), self._grow)
        self._print(f"The active generation of {self.name} is {self._activation} now. A running job stops.")

    def watch(self) -> None:
        """Wait for the first snapshot of the next job, and print the time without new snapshots."""
        epoch = self._activation.epoch
        waited = self._handover.await_epoch(self._settings, self._application, epoch)
        since = "" if waited is None else f", {waited.total_seconds():.1f} s after the last one of the former job"
        self._print(f"The first snapshot of {self.name} in epoch {epoch} is there{since}.")

    def _grow(self, require_lease: Callable[[], object]) -> None:
        suite, options = load_suite(self._settings.application), self._options
        enrichment, derive = (
            suite.group(self._application, group) if group else None
            for group in (options.enrichment_group, options.derive_group)
        )
        groups = [*self._growth.groups, *filter(None, (enrichment, derive))]
        self._growth.run(groups, self._print, require_lease, derive)

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False)


def repetition(switched: Sequence[str], left: Sequence[str]) -> str:
    """Return the line that names the applications that are left, and says how to switch them too."""
    again = ", and with ".join(f"--application {name}" for name in left)
    return (
        f"! Not switched: {', '.join(left)}. Fix that, and run the same command again with {again}: this leaves "
        f"{', '.join(switched)} as it is now. Then:"
    )


def next_steps(options: RebuildOptions) -> str:
    """Return the line that says what to do after the switch."""
    release = "that release" if options.rollback else "this release"
    back = "" if options.rollback else " `stateloop rebuild --rollback` goes back, unless partitions were added."
    return (
        f"Replace the workers by those of {release} first, then start its job, which publishes each window once.{back}"
    )


def build(console: Console, rebuild: Rebuild, plan: RebuildPlan) -> None:
    """Build the generation, with a progress bar on a terminal, otherwise with a line for each batch."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("records", total=plan.records)
        done, began = 0, time.monotonic()

        def report(batch: StreamingQueryProgress) -> None:
            nonlocal done
            done += batch.numInputRows // rebuild.scans
            progress.update(task, completed=done, total=max(plan.records, done))
            if not console.is_terminal:
                console.print(f"{done} of {plan.records} records{_left(plan.records - done, done, began)}")

        rebuild.build(plan, _now_ms(), report, lambda line: console.print(f"! {line}", style="yellow", markup=False))


def _describe(console: Console, plan: RebuildPlan) -> None:
    for difference in plan.differences:
        console.print(f"- {difference}", markup=False)
    least, most = (timedelta(seconds=round(plan.records / rate)) for rate in (FAST, SLOW))
    verb = "continues" if plan.is_begun else "builds"
    console.print(f"This {verb} {plan.generation} from {plan.records} records, in {least} to {most}.")
    for missing in plan.missing:
        console.print(f"! {missing}", style="yellow", markup=False)


def _left(records: int, done: int, began: float) -> str:
    """Return the time that these records take at the rate since the beginning; nothing while there is none."""
    if records <= 0 or not done:
        return ""
    return f", about {timedelta(seconds=round(records * (time.monotonic() - began) / done))} left"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
