"""The state of a simulated job: its last commit, the state before it was replaced, and savepoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts import Emit
from services.runtime.kafka.values import Partition
from spark_app.topics.identity import sources
from tests.simulation.query import Checkpoint, Commit
from tests.simulation.savepoints import Savepoints
from tests.simulation.script import START, time_at

if TYPE_CHECKING:
    from contracts import Application
    from tests.simulation.loop import SimulationLoop
    from tests.simulation.network import WatchedBroker

EPOCH = round(START.timestamp() * 1000)
"""The epoch of the first state."""


class JobStates:
    """The states of the job, which reads the topics as they are now."""

    def __init__(self, application: Application, broker: WatchedBroker, loop: SimulationLoop) -> None:
        self.savepoints = Savepoints(application, broker)
        self._sources = sources(application)
        self._snapshots = application.topics.snapshots
        self._emits_closed = application.emit is Emit.CLOSE
        self._broker = broker
        self._loop = loop
        self.checkpoint = Checkpoint(Commit(EPOCH, self._beginning()))
        self.former: Commit | None = None
        """The last commit before the state was replaced last."""

    @property
    def partitions(self) -> int:
        """The number of partitions of the topics."""
        return len(self._broker.topics.topic(self._snapshots).logs)

    def save(self) -> None:
        """Make a savepoint."""
        self.savepoints.create(self.checkpoint.last)

    def rebuild(self) -> None:
        """Let the next job begin with an empty state: it reads the topics again, in a new epoch."""
        last = self.checkpoint.last
        bound = (last.closed if self._emits_closed else last.watermark) or last.bound
        self._replace(Commit(self._now_ms(), self._beginning(), bound=bound, is_built=False))

    def restore(self) -> None:
        """Let the next job begin with the last savepoint, unless that is refused."""
        restored = self.savepoints.restore(self._now_ms())
        if restored is not None:
            self._replace(restored)

    def _replace(self, commit: Commit) -> None:
        self.former, self.checkpoint.last = self.checkpoint.last, commit

    def _beginning(self) -> dict[Partition, int]:
        return {Partition(name, number): 0 for name in self._sources for number in range(self.partitions)}

    def _now_ms(self) -> int:
        return round(time_at(self._loop.time()).timestamp() * 1000)
