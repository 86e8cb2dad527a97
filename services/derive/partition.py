"""One assigned partition of snapshots: what was evaluated, and whether its results are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.alerts.evaluator import AlertEvaluator
    from services.runtime.worker.partition import AssignedPartition


class DerivePartition:
    """The state of one assignment of a partition."""

    def __init__(self, partition: AssignedPartition, start: int) -> None:
        self.partition = partition
        self.start = start
        """The offset from which on it is read."""
        self.evaluator: AlertEvaluator | None = None
        """None without alerts and reference tables, and for a partition that closed before it was restored."""
        self.committed: int | None = None
        """The position that was committed last as a proof of membership."""
        self.is_unsure = False
        """Whether a write had an unknown result, so that the alerts are to be read again."""
        self.is_doubted = False
        """Whether a write failed, so that only a commit proves that this worker owns the partition."""

    @property
    def position(self) -> int:
        """The offset up to which the snapshots are evaluated, with acknowledged results."""
        return self.start if self.partition.position is None else self.partition.position

    @property
    def is_committed(self) -> bool:
        """Whether the broker has confirmed the position."""
        is_confirmed = self.partition.position is not None and self.partition.is_committed
        return is_confirmed or self.committed == self.position

    def accept(self, offset: int) -> None:
        """Note that the results of the snapshots up to an offset are written."""
        if self.evaluator is not None:
            self.evaluator.accept()
        self.partition.track(offset, 0)

    def discard(self) -> None:
        """Drop results that may not be written: they are evaluated again."""
        if self.evaluator is not None:
            self.evaluator.discard()
