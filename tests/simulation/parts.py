"""The parts of a simulated loop: each runs as one process after the other, which faults stop, cut off and kill."""

from __future__ import annotations

from contextvars import Context
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Protocol

from tests.simulation.loop import Process
from tests.simulation.network import WORKER_POLLS, ProcessNetwork
from tests.simulation.script import time_at

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from datetime import datetime

    from tests.simulation.loop import SimulationLoop
    from tests.simulation.network import Polls, WatchedBroker

    OnStop = Callable[[Callable[[], None]], None]

RESTART_S = 5.0
"""The pause before a process that ended with an error is started again."""
RECONNECT_S = (0.0, 0.02, 2.0)
"""The longest times until a process that was frozen has connections again: a broker closes idle ones."""


class Main(Protocol):
    """Runs a process of a part."""

    def __call__(
        self, network: ProcessNetwork, now: Callable[[], datetime], on_stop: OnStop
    ) -> Coroutine[None, None, None]:
        """Run until the end. `on_stop` receives what a signal to stop calls."""
        ...


class Part:
    """A part that one process runs at a time. It starts the next one when that has ended."""

    def __init__(  # noqa: PLR0913, PLR0917  # its surroundings
        self, name: str, seed: str, loop: SimulationLoop, broker: WatchedBroker, main: Main, polls: Polls = WORKER_POLLS
    ) -> None:
        self.name = name
        self.processes: list[Process] = []
        self.errors: list[Exception] = []
        """The errors with which its processes have ended."""
        self._loop = loop
        self._broker = broker
        self._main = main
        self._polls = polls
        self._random = Random(f"{seed} {name}")
        self._is_cut = self._leaderless = 0
        self._is_broker_away = self._is_held = self._is_due = False
        self._ahead_s = 0.0
        self._restart_s = RESTART_S
        self._stop: Callable[[], None] = _nothing
        self._network: ProcessNetwork

    def start(self) -> None:
        """Start a process."""
        process = Process(f"{self.name} {len(self.processes)}")
        self.processes.append(process)
        self._network = ProcessNetwork(self._loop, self._random, self._broker, self._polls)
        self._connect()
        self._stop, self._restart_s = _nothing, RESTART_S
        _ = self._loop.start(process, self._run(process, self._network))

    async def _run(self, process: Process, network: ProcessNetwork) -> None:
        try:
            await self._main(network, self.now, self._on_stop)
        except* Exception as errors:  # noqa: BLE001  # an error that no code expects is a problem of the run
            self.errors += errors.exceptions
        if not process.is_killed:
            self._start_later(process)

    def now(self) -> datetime:
        """The time of day by the clock of its host."""
        return time_at(self._loop.time()) + timedelta(seconds=self._ahead_s)

    # Faults

    def crash(self, down_s: float) -> None:
        """Kill the process, and start another one later."""
        process = self.process
        if process.is_killed:
            return
        self._loop.kill_process(process)
        self._network.is_up = False
        self._restart_s = down_s
        self._start_later(process)

    def stop(self, down_s: float) -> None:
        """Ask the process to stop, as SIGTERM does, and start another one when it has ended."""
        self._restart_s = down_s
        self._stop()

    def hold(self) -> None:
        """Ask the process to stop, and start no other one until `release`."""
        self._is_held = True
        self._stop()

    def release(self) -> None:
        """Start a process if one is due, and whenever one ends."""
        is_due, self._is_held, self._is_due = self._is_due, False, False
        if is_due:
            self.start()

    def freeze(self) -> None:
        """Run none of its code until it is thawed."""
        self._loop.stop_process(self.process)

    def thaw(self, process: Process) -> None:
        """Go on with a process that was frozen. Until it has connections again, it does not know what it has lost."""
        if process.is_killed:
            return
        self.cut(1)
        self._loop.resume_process(process)
        reconnect_s = self._random.uniform(0.0, self._random.choice(RECONNECT_S))
        self._loop.call_later(reconnect_s, self.cut, -1, context=Context())

    def cut(self, by: int) -> None:
        """Cut its connection to the broker, or with -1 restore it."""
        self._is_cut += by
        self._connect()

    def lose_leaders(self, by: int) -> None:
        """Let no record that it sends arrive, while it reads and commits; with -1 restore that."""
        self._leaderless += by
        self._connect()

    def lose_broker(self, *, is_away: bool) -> None:
        """Note that the broker is away, or back."""
        self._is_broker_away = is_away
        self._connect()

    def lose_acknowledgements(self, count: int) -> None:
        """Let the answers to its next writes not arrive."""
        self._network.lost_acknowledgements += count

    def interrupt(self, requests: int, act: Callable[[], None]) -> None:
        """Call `act` when the broker has carried out so many more requests of the process, before it answers."""
        self._network.interrupt(requests, act)

    def step_clock(self, seconds: float) -> None:
        """Set the clock of its host ahead, or back."""
        self._ahead_s += seconds

    def wake(self) -> None:
        """End the pauses of its clients: there is something to do."""
        self._network.wake()

    @property
    def process(self) -> Process:
        """The present process, or the last one."""
        return self.processes[-1]

    def _connect(self) -> None:
        self._network.is_up = not (self._is_cut or self._is_broker_away or self.process.is_killed)
        self._network.has_leaders = not self._leaderless
        self.wake()

    def _on_stop(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        if self._is_held:
            stop()

    def _start_later(self, ended: Process) -> None:
        self._stop = _nothing
        self._loop.call_later(self._restart_s, self._start_after, ended, context=Context())  # the simulation starts it

    def _start_after(self, ended: Process) -> None:
        if self.process is ended and self._is_held:
            self._is_due = True
        elif self.process is ended:
            self.start()


def _nothing() -> None:
    """There is nothing to stop."""
