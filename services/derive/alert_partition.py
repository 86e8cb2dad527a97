"""What a worker knows of one partition whose snapshots it evaluates, and changes that are not yet written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.derive.present_states import PresentStates

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from contracts.records.record import Record
    from contracts.wire import Order, Snapshot
    from contracts.wire.alerts import AlertRecord
    from services.derive.present_states import Window


class AlertPartition:
    """The present states of a partition, its active alerts, and the offset of the next snapshot to be evaluated."""

    def __init__(self, number: int, offset: int, names: Iterable[str]) -> None:
        self.number = number
        self.offset = offset
        self.newest: datetime | None = None
        """The largest `as_of` of its snapshots."""
        self.states = PresentStates()
        self.records: dict[str, dict[Window, AlertRecord]] = {name: {} for name in names}
        """The last record of each window that has active alerts, or that is ahead of the offset; by name of alerts."""
        self.pending: dict[str, set[Window]] = {name: set() for name in names}
        """The windows that have pending alerts; by name of alerts."""

    def forget_alerts(self) -> None:
        """Forget the alerts, so that they are restored."""
        for name in self.records:
            self.records[name], self.pending[name] = {}, set()

    def fill(self, snapshots: Iterable[tuple[Record, Snapshot]]) -> None:
        """Store snapshots that were evaluated before."""
        found = list(snapshots)
        self.states.change((one.window, one.order, record.value) for record, one in found)
        times = [one.as_of for _, one in found]
        self.newest = max([self.newest, *times] if self.newest else times, default=None)

    def restore(self, name: str, record: AlertRecord) -> None:
        """Take over a record of the alerts' topic. A closed one matters while snapshots before it may come again."""
        self._put(name, record, matters=bool(record.active) or record.offset >= self.offset)

    def apply(self, changes: Changes) -> None:
        """Take over changes that are written."""
        if changes.states:
            self.states.change((window, order, value) for window, (order, value) in changes.states.items())
        for (name, _), record in changes.records.items():
            self._put(name, record, matters=bool(record.active))
        self.offset = max(self.offset, changes.offset)
        self.newest = changes.newest or self.newest

    def _put(self, name: str, record: AlertRecord, *, matters: bool) -> None:
        window = record.device_id, record.first_seen
        if matters:
            self.records[name][window] = record
        else:
            self.records[name].pop(window, None)
        if any(one.status == "pending" for one in record.alerts):
            self.pending[name].add(window)
        else:
            self.pending[name].discard(window)


class Changes:
    """What was evaluated of a partition since its last changes were written."""

    def __init__(self, partition: AlertPartition) -> None:
        self.records: dict[tuple[str, Window], AlertRecord] = {}
        self.states: dict[Window, tuple[Order, bytes | None]] = {}
        self.offset = partition.offset
        self.newest = partition.newest
        self._partition = partition

    def former(self, name: str, window: Window) -> AlertRecord | None:
        """The last record of a window; by name of alerts."""
        return self.records.get((name, window)) or self._partition.records[name].get(window)

    def order(self, window: Window) -> Order | None:
        """The epoch and version of the newest snapshot of a window."""
        found = self.states.get(window)
        return found[0] if found else self._partition.states.order(window)
