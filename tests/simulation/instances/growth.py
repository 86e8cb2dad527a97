"""Adds partitions to the topics of a script as `stateloop rebuild --partitions` does, while instances run."""

from __future__ import annotations

import asyncio
from contextvars import Context
from functools import partial
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from contracts.errors import StateloopError
from tests.simulation.blocking import ModelCalls
from tests.simulation.growth import command, run_with
from tests.simulation.lease import ModelFiles
from tests.simulation.network import NO_POLLS
from tests.simulation.parts import Part

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from contracts import Application
    from tests.simulation.instances.script import Fault
    from tests.simulation.loop import Process, SimulationLoop
    from tests.simulation.network import ProcessNetwork, WatchedBroker
    from tests.simulation.parts import OnStop

NAME = "growth"
AGAIN_S = 1.0
"""The pause before the command is run again after an error."""
REACTION_S = 2.0
"""The longest time until the next job starts after the command."""


class Layout(NamedTuple):
    """A number of partitions: from `began` on they were added, and from `since` on the job uses them."""

    began: float
    since: float
    partitions: int


class Growth:
    """The growths of the topics, one after the other, by a command that may be killed, and is then run again.

    `resume` starts the job that uses the new number of partitions.
    """

    def __init__(
        self,
        application: Application,
        broker: WatchedBroker,
        loop: SimulationLoop,
        seed: int,
        resume: Callable[[int], None],
    ) -> None:
        self.is_running = False
        """Whether no job writes, because partitions are being added."""
        self.began = float("-inf")
        """When the last growth began."""
        self._application = application
        self._broker = broker
        self._loop = loop
        self._resume = resume
        self._random = Random(f"{seed} growth job")
        self._part = Part(NAME, str(seed), loop, broker, self._run, NO_POLLS)
        self._partitions = 0
        self._is_due = False
        """Whether the command must be run."""
        self._files = ModelFiles()

    @property
    def processes(self) -> list[Process]:
        """The processes of the command."""
        return self._part.processes

    @property
    def errors(self) -> list[Exception]:
        """The errors with which they have ended."""
        return self._part.errors

    def begin(self, partitions: int, *, is_broker_away: bool) -> None:
        """Add partitions, once the job has stopped."""
        self.is_running = self._is_due = True
        self.began, self._partitions = self._loop.time(), partitions
        if self.processes:
            self._part.crash(0.0)
        else:
            self._part.start()
        self.lose_broker(is_away=is_broker_away)

    def break_off(self, fault: Fault) -> None:
        """Kill the command: at once, or when the broker has carried out `amount` more of its requests."""
        if self._is_due and fault.amount:
            self._part.interrupt(round(fault.amount), partial(self._part.crash, fault.lasts))
        elif self._is_due:
            self._part.crash(fault.lasts)

    def lose_broker(self, *, is_away: bool) -> None:
        """Note that the broker is away, or back."""
        if self.processes:
            self._part.lose_broker(is_away=is_away)

    async def _run(self, network: ProcessNetwork, now: Callable[[], datetime], on_stop: OnStop) -> None:  # noqa: ARG002  # it is only killed
        """Run the command until there is no error."""
        calls = ModelCalls(network)
        while self._is_due:
            try:
                await calls.call(partial(self._grow, network, now()))
            except StateloopError:
                await asyncio.sleep(AGAIN_S)
        await asyncio.Event().wait()

    def _grow(self, network: ProcessNetwork, now: datetime) -> None:
        growth = command(self._application, self._broker, network, self._partitions)
        lease = self._files.take_over(network.time, now)
        run_with(lease, growth, network, lambda _: None)
        self._is_due = False
        lease.release()
        self._loop.call_later(self._random.uniform(0.0, REACTION_S), self._end, context=Context())

    def _end(self) -> None:
        self.is_running = False
        self._resume(self._partitions)
