"""One partition whose snapshots a worker evaluates: its states, its alerts, and changes that are not yet written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.wire.dead_letter import NEVER_WRITTEN
from services.alerts.present_states import PresentStates, position_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from contracts.wire import Order, Snapshot
    from contracts.wire.alert_record import AlertRecord
    from services.alerts.present_states import Position
    from services.runtime.job_progress import Published


REMOVED = 0, 0
"""The order of a window that was removed: less than that of every snapshot."""


class AlertPartition:
    """The present states of a partition, its active alerts, and the offset of the next snapshot to be evaluated."""

    def __init__(self, number: int, offset: int, names: Iterable[str]) -> None:
        self.number = number
        self.offset = offset
        self._is_new = not offset
        """Whether none of its snapshots was evaluated when it was assigned, as of a partition that was added."""
        self.newest: datetime | None = None
        """The largest `as_of` of its snapshots."""
        self.until: datetime | None = None
        """The time before which all records of the input that arrived are in the snapshots before the offset.

        Those of some epoch: a window that is over is so in later ones.
        """
        self.reached: Published | None = None
        """The newest progress of the job up to which the snapshots are evaluated."""
        self._unread: Published | None = None
        """A progress of the job up to which the snapshots are not evaluated yet."""
        self.is_current = False
        """Whether it was evaluated up to the progress of the job: before, it is unknown which windows are expired."""
        self.states = PresentStates()
        self.records: dict[str, dict[Position, AlertRecord]] = {name: {} for name in names}
        """The last record of each window that has active alerts, or that is ahead of the offset; by name of alerts."""
        self.pending: dict[str, dict[Position, None]] = {name: {} for name in names}
        """The windows that have pending alerts, in their order; by name of alerts."""

    def forget_alerts(self) -> None:
        """Drop the alerts, so that they are restored."""
        for name in self.records:
            self.records[name], self.pending[name] = {}, {}

    def fill(self, read: Sequence[tuple[Position, Snapshot | None, bytes | None]]) -> None:
        """Store snapshots that were evaluated before; one without a snapshot was removed by a tombstone."""
        self.states.change(
            (position, snapshot.order if snapshot else REMOVED, value) for position, snapshot, value in read
        )
        times = [snapshot.as_of for _, snapshot, _ in read if snapshot]
        self.newest = max([self.newest, *times] if self.newest else times, default=None)

    def reach(self, published: Published | None) -> None:
        """Follow the progress of the job, as far as the snapshots are evaluated up to it. None: it has recorded none.

        A worker that is always behind the newest progress follows an earlier one. A new partition of which the job has
        recorded none yet is current: changed rules take effect at once, and the first progress closes what has expired.
        Of another partition the progress is lost, as after a long outage: alerts that expiry has closed would open
        again, so it waits for the next progress.
        """
        if published is None:
            self.is_current = self.is_current or self._is_new
            return
        if (former := published.former) is not None and former.offset <= self.offset:
            self.until = max(self.until or former.time, former.time)
        for progress in (self._unread or published, published):
            if progress.offset <= self.offset:
                self.until, self.is_current = max(self.until or progress.time, progress.time), True
                self.reached = max(self.reached or progress, progress, key=_by_epoch)
        if self._unread is None or self._unread.offset <= self.offset or published.offset < self._unread.offset:
            self._unread = published if published.offset > self.offset else None

    def restore(self, name: str, record: AlertRecord) -> None:
        """Apply a record of the alerts' topic. A closed one matters while earlier snapshots may come again."""
        self._put(name, record, matters=bool(record.active) or record.offset >= self.offset)

    def forget(self, name: str, position: Position) -> None:
        """Apply a tombstone of the alerts' topic."""
        self.records[name].pop(position, None)
        self.pending[name].pop(position, None)

    def drop_offsets(self, end: int) -> None:
        """Drop the offsets that alerts have from this one on, where the snapshots end: their topic was made anew."""
        for name, records in self.records.items():
            for record in [record for record in records.values() if record.offset >= end]:
                self._put(name, record.model_copy(update={"offset": NEVER_WRITTEN}), matters=bool(record.active))

    def apply(self, changes: Changes) -> None:
        """Apply changes that are written."""
        if changes.states:
            self.states.change((position, order, value) for position, (order, value) in changes.states.items())
        for (name, _), record in changes.records.items():
            self._put(name, record, matters=bool(record.active))
        self.offset = max(self.offset, changes.offset)
        self.newest = changes.newest or self.newest

    def _put(self, name: str, record: AlertRecord, *, matters: bool) -> None:
        position = position_of((record.device_id, record.first_seen))
        if matters:
            self.records[name][position] = record
        else:
            self.records[name].pop(position, None)
        if any(alert.status == "pending" for alert in record.alerts):
            self.pending[name][position] = None
        else:
            self.pending[name].pop(position, None)


def _by_epoch(published: Published) -> tuple[int, datetime]:
    return published.epoch, published.time


class Changes:
    """The changes of a partition's alerts that are not yet written."""

    def __init__(self, partition: AlertPartition) -> None:
        self.records: dict[tuple[str, Position], AlertRecord] = {}
        self.states: dict[Position, tuple[Order, bytes | None]] = {}
        self.offset = partition.offset
        self.newest = partition.newest
        self._partition = partition

    def former(self, name: str, position: Position) -> AlertRecord | None:
        """The last record of a window; by name of alerts."""
        return self.records.get((name, position)) or self._partition.records[name].get(position)

    def order(self, position: Position) -> Order | None:
        """The epoch and version of the newest snapshot of a window."""
        found = self.states.get(position)
        return found[0] if found else self._partition.states.order(position)
