"""Adds partitions to the topics of a script as `stateloop rebuild --partitions` does, and is its operator."""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import TYPE_CHECKING, NamedTuple

from contracts.errors import StateloopError
from services.tools.topics.growth import PartitionGrowth
from tests.simulation.blocking import ModelCalls
from tests.simulation.kafka.clients import ModelKafka

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from random import Random

    from contracts import Application
    from tests.simulation.loop import SimulationLoop
    from tests.simulation.network import ProcessNetwork, WatchedBroker
    from tests.simulation.parts import OnStop, Part

AGAIN_S = 5.0
"""The pause before the command is run again after an error."""
REACTION_S = 20.0
"""The longest time in which the operator follows a line that the command prints."""
MUST_RUN = "must run"
"""A part of the line that asks to let the workers run."""


class Grown(NamedTuple):
    """A growth: when it began, and when the job and the workers were started again; None before."""

    began: float
    partitions: int
    ended: float | None = None


class Growth:
    """The growth of the topics. `activate` makes the state of the next job, while no other job runs.

    The job is stopped when it begins, and the workers when the command asks for that. All start after it.
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
        self._broker = broker
        self._loop = loop
        self._parts = parts
        self._activate = activate
        self._random = random
        self._partitions = 0

    @property
    def is_running(self) -> bool:
        """Whether there is a growth that has not ended."""
        return bool(self.times) and self.times[-1].ended is None

    def begin(self, partitions: int) -> None:
        """Stop the job. The process of the command adds the partitions."""
        self._partitions = partitions
        self.times.append(Grown(self._loop.time(), partitions))
        job = self._parts["job"]
        job.hold()
        job.crash(0.0)

    async def run(self, network: ProcessNetwork, now: Callable[[], datetime], on_stop: OnStop) -> None:  # noqa: ARG002  # it is only killed
        """Run the command until there is no error."""
        calls = ModelCalls(network)
        while self.is_running:
            try:
                await calls.call(lambda: self._grow(network))
                self._end()
            except StateloopError:
                await asyncio.sleep(AGAIN_S)
        await asyncio.Event().wait()

    def _grow(self, network: ProcessNetwork) -> None:
        kafka, sleep = ModelKafka(self._broker, network), network.time.sleep
        growth = PartitionGrowth(self._application, kafka, "the broker", self._partitions, sleep)
        growth.run(growth.groups, self._follow)

    def _follow(self, line: str) -> None:
        """Do what a line asks for: stop the workers, unless they must run."""
        if MUST_RUN not in line:
            self._later(self._stop_workers)

    def _stop_workers(self) -> None:
        if self.is_running:
            for part in self._workers():
                part.hold()

    def _end(self) -> None:
        """Start the job and the workers."""
        self._activate()
        self.times[-1] = self.times[-1]._replace(ended=self._loop.time() + REACTION_S)
        for part in (self._parts["job"], *self._workers()):
            self._later(part.release)

    def _workers(self) -> list[Part]:
        return [part for name, part in self._parts.items() if name.startswith(("worker-", "derive-"))]

    def _later(self, act: Callable[[], object]) -> None:
        self._loop.call_later(self._random.uniform(0.0, REACTION_S), act, context=Context())
