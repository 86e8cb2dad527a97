"""Adds partitions to the topics of a script as `stateloop rebuild --partitions` does, and is its operator."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import Context
from typing import TYPE_CHECKING, NamedTuple

from contracts.errors import StateloopError
from services.tools.topics.growth import PartitionGrowth
from tests.simulation.blocking import ModelCalls
from tests.simulation.kafka.clients import ModelKafka
from tests.simulation.lease import ModelFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from random import Random

    from contracts import Application
    from spark_app.checkpoint.lease import CheckpointLease
    from tests.simulation.loop import SimulationLoop
    from tests.simulation.network import ProcessNetwork, WatchedBroker
    from tests.simulation.parts import OnStop, Part

AGAIN_S = 5.0
"""The pause before the command is run again after an error."""
REACTION_S = 20.0
"""The longest time in which the operator follows a line that the command prints."""
MOMENT_S = 0.001
MUST_RUN = "must run"
"""A part of the line that asks to let the workers run."""


class Grown(NamedTuple):
    """A growth: when it began, and when the job and the workers were started again; None before."""

    began: float
    partitions: int
    ended: float | None = None


def command(
    application: Application, broker: WatchedBroker, network: ProcessNetwork, partitions: int
) -> PartitionGrowth:
    """Return the command of a process that adds partitions."""
    kafka = ModelKafka(broker, network)
    return PartitionGrowth(application, kafka, "the broker", partitions, network.time.sleep)


def run_with(
    lease: CheckpointLease, growth: PartitionGrowth, network: ProcessNetwork, report: Callable[[str], object]
) -> None:
    """Run a command while it has the lease."""

    def require_lease() -> None:
        network.carry_out()
        network.time.sleep(MOMENT_S)  # it may be frozen or killed here
        lease.renew()

    growth.run(growth.groups, report, require_lease)
    require_lease()


class Growth:
    """The growth of the topics. `activate` makes the state of the next job, while no other job runs.

    The job is stopped when it begins, and the workers when the command asks for that. All start after it. An operator
    who sees no progress may start the job before that, which gets the lease if the command does not run, or may run the
    command once more.
    """

    def __init__(  # noqa: PLR0913, PLR0917  # its surroundings
        self,
        application: Application,
        broker: WatchedBroker,
        loop: SimulationLoop,
        parts: Mapping[str, Part],
        activate: Callable[[], object],
        random: Random,
    ) -> None:
        self.times: list[Grown] = []
        self._application = application
        self._topics = {topic.name for topic in application.catalogue() if topic.grows}
        self._broker = broker
        self._loop = loop
        self._parts = parts
        self._activate = activate
        self._random = random
        self._partitions = 0
        self._must_run = True
        """Whether the workers must run."""
        self._files = ModelFiles()
        self._job_lease: CheckpointLease | None = None

    @property
    def is_running(self) -> bool:
        """Whether there is a growth that has not ended."""
        return bool(self.times) and self.times[-1].ended is None

    def begin(self, partitions: int) -> None:
        """Stop the job. The process of the command adds the partitions."""
        self._partitions = partitions
        self.times.append(Grown(self._loop.time(), partitions))
        self._stop_job()

    async def run(self, network: ProcessNetwork, now: Callable[[], datetime], on_stop: OnStop) -> None:  # noqa: ARG002  # it is only killed
        """Run the command until there is no error."""
        calls = ModelCalls(network)
        while self.is_running:
            try:
                await calls.call(lambda: self._grow(network, now()))
            except StateloopError:
                await asyncio.sleep(AGAIN_S)
        await asyncio.Event().wait()

    async def run_again(self, network: ProcessNetwork, now: Callable[[], datetime], on_stop: OnStop) -> None:  # noqa: ARG002  # it ends by itself
        """Run the command once more, while the first one perhaps runs: it takes the lease over."""
        with suppress(StateloopError):
            if self.is_running:
                await ModelCalls(network).call(lambda: self._grow(network, now()))
        await asyncio.Event().wait()

    async def start_job(self, network: ProcessNetwork, now: Callable[[], datetime], on_stop: OnStop) -> None:  # noqa: ARG002  # it ends by itself
        """Start the job of the former state, unless the command runs or has added partitions."""
        with suppress(StateloopError):
            await ModelCalls(network).call(lambda: self._start_job(network, now()))
        await asyncio.Event().wait()

    def _grow(self, network: ProcessNetwork, now: datetime) -> None:
        growth = self._command(network)
        self._stop_job()
        lease = self._files.take_over(network.time, now)
        run_with(lease, growth, network, self._follow)
        self._end()
        lease.release()

    def _command(self, network: ProcessNetwork) -> PartitionGrowth:
        return command(self._application, self._broker, network, self._partitions)

    def _start_job(self, network: ProcessNetwork, now: datetime) -> None:
        lease = self._files.acquire(network.time, now)
        if self.is_running and self._command(network).missing.keys() == self._topics:
            self._job_lease = lease
            self._parts["job"].release()
        else:
            lease.release()

    def _stop_job(self) -> None:
        """Stop the job, which releases its lease."""
        job = self._parts["job"]
        job.hold()
        job.crash(0.0)
        if self._job_lease is not None:
            self._job_lease.release()
            self._job_lease = None

    def _follow(self, line: str) -> None:
        """Do later what the last line asks for: start the workers, or stop them.

        That of a command whose growth another one has completed asks for nothing.
        """
        self._must_run = MUST_RUN in line or not self.is_running
        self._later(self._start_or_stop_workers)

    def _start_or_stop_workers(self) -> None:
        for part in self._workers():
            if self._must_run:
                part.release()
            else:
                part.hold()

    def _end(self) -> None:
        """Start the job and the workers."""
        self._activate()
        self.times[-1] = self.times[-1]._replace(ended=self._loop.time() + REACTION_S)
        self._later(self._let_job_start)
        self._must_run = True
        self._later(self._start_or_stop_workers)

    def _let_job_start(self) -> None:
        """Let the job start, unless another growth has begun meanwhile: it stopped a job that had not started."""
        if not self.is_running:
            self._parts["job"].release()

    def _workers(self) -> list[Part]:
        return [part for name, part in self._parts.items() if name.startswith(("worker-", "derive-"))]

    def _later(self, act: Callable[[], object]) -> None:
        self._loop.call_later(self._random.uniform(0.0, REACTION_S), act, context=Context())
