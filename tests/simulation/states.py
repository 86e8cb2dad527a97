"""The states of a simulated job: its last commit, those of its other generations, and savepoints."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from contracts import Emit
from services.runtime.kafka.values import OffsetAt, Partition
from spark_app.checkpoint import unpublished_windows
from spark_app.checkpoint.first_window import MILLISECOND, last_unread
from spark_app.checkpoint.generations import FOLDER, ROOT, activate, active, previous
from spark_app.checkpoint.unpublished_windows import BEGINNING, UnpublishedWindows
from spark_app.topics.identity import sources
from spark_app.topics.offsets import EARLIEST_MS
from tests.simulation.query import Checkpoint, Commit
from tests.simulation.savepoints import MemoryFolder, Savepoints, milliseconds, write_closed
from tests.simulation.script import START, time_at

if TYPE_CHECKING:
    from contracts import Application
    from tests.simulation.loop import SimulationLoop
    from tests.simulation.network import WatchedBroker

EPOCH = round(START.timestamp() * 1000)
"""The epoch of the first state."""


class JobStates:
    """The states of the job, which reads the topics as they are now.

    Activations, and the windows that a generation leaves out, are decided by the product, on folders in memory.
    """

    def __init__(self, application: Application, broker: WatchedBroker, loop: SimulationLoop) -> None:
        self.savepoints = Savepoints(application, broker)
        self._application = application
        self._sources = sources(application)
        self._snapshots = application.topics.snapshots
        self._emits_closed = application.emit is Emit.CLOSE
        self._left: dict[Partition, OffsetAt] = {}
        """The first event of each partition that a rebuild reads, after others were deleted."""
        self._broker = broker
        self._loop = loop
        self.checkpoint = Checkpoint(Commit(EPOCH, self._beginning()))
        self.former: Commit | None = None
        """The last commit before the state was replaced last."""
        self._folder: Any = MemoryFolder("the checkpoint")
        self._commits: dict[str, Commit] = {}
        """The last commits of the generations that were active."""

    @property
    def partitions(self) -> int:
        """The number of partitions of the topics."""
        return len(self._broker.topics.topic(self._snapshots).logs)

    def save(self) -> None:
        """Make a savepoint."""
        self.savepoints.create(self.checkpoint.last)

    def rebuild(self) -> None:
        """Let the next job begin with an empty state: it reads the topics again, in a new epoch."""
        last, missing = self.checkpoint.last, self._missing()
        if not self._emits_closed:
            missing = last.unpublished.missing if last.watermark is None else milliseconds(last.watermark)
        unpublished = UnpublishedWindows(missing=missing)
        built = Commit(last.epoch, self._beginning(), unpublished=unpublished, is_built=False)
        self._activate(f"{FOLDER}{len(self._commits) + 1}", built)

    def rebuild_incomplete(self) -> None:
        """Rebuild with `--accept-missing`: retention has deleted the events that the job has read, but for the last.

        Other readers have them still.
        """
        for place, offset in self.checkpoint.last.positions.items():
            if place.topic == self._application.topics.events and offset > self._beginning()[place]:
                last = self._broker.topics.log(place).entry(offset - 1)
                self._left[place] = OffsetAt(last.offset, last.timestamp_ms)
        self.rebuild()

    def roll_back(self) -> None:
        """Let the next job continue with the state before, unless there is none, or it has fewer partitions."""
        former = previous(self._folder)
        if former is not None and self._commits[former].positions.keys() == self._beginning().keys():
            self._activate(former, replace(self._commits[former], is_built=False))

    def restore(self) -> None:
        """Let the next job begin with the last savepoint, unless that is refused. It is the first of a checkpoint."""
        restored = self.savepoints.restore(self._now_ms())
        if restored is not None:
            self._folder, self._commits = MemoryFolder("the checkpoint"), {}
            self._replace(restored)

    def _activate(self, generation: str, commit: Commit) -> None:
        last, now = self.checkpoint.last, active(self._folder)
        self._commits[ROOT if now is None else now.generation] = last
        if self._emits_closed:
            commit = replace(commit, unpublished=_unpublished(commit, last))
        activation = activate(self._folder, generation, self._now_ms(), last.epoch)
        self._replace(replace(commit, epoch=activation.epoch))

    def _replace(self, commit: Commit) -> None:
        self.former, self.checkpoint.last = self.checkpoint.last, commit

    def _beginning(self) -> dict[Partition, int]:
        beginning = {Partition(name, number): 0 for name in self._sources for number in range(self.partitions)}
        return beginning | {place: left.offset for place, left in self._left.items()}

    def _missing(self) -> int:
        """Return the time up to which windows begin whose first events a rebuild cannot read."""
        begin_offsets: dict[tuple[str, int], int] = {place: left.offset for place, left in self._left.items()}
        unread = last_unread(begin_offsets, self._left, EARLIEST_MS)
        return BEGINNING if unread is None else unread + self._application.skew // MILLISECOND

    def _now_ms(self) -> int:
        return milliseconds(time_at(self._loop.time()))


def _unpublished(commit: Commit, last: Commit) -> UnpublishedWindows:
    """Return the windows that a state leaves out when it follows the last one."""
    folder: Any = MemoryFolder("the next one")
    former: Any = MemoryFolder("the active one")
    for place, one in ((folder, commit), (former, last)):
        write_closed(place, one)
    unpublished_windows.carry_closed(folder, former)
    return unpublished_windows.stored_windows(folder)
