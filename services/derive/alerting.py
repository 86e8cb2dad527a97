"""Evaluates alerts, and derived states with reference tables, for the partitions of a worker.

The topic of the alerts is their state: a partition of it is read whole when it is assigned. A record is written before
the offset of its snapshot is committed, so after a crash some snapshots come again. Each record has the offset up to
which its window was evaluated, and an earlier snapshot changes nothing.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import orjson

from contracts.errors import AUTHOR_ERRORS
from contracts.model.emit import Emit
from contracts.model.named_state import Derived
from contracts.records.alerts import Evaluation, Rules, expired, rule_of
from contracts.records.record import Reason, Record, timestamp_ms
from contracts.types.key import shortened
from contracts.wire import NEVER_WRITTEN, DeadLetter
from contracts.wire.partition import partition as partition_of
from contracts.wire.window_key import parse_window_key, window_key
from services.derive.alert_partition import AlertPartition, Changes
from services.derive.alert_sweep import concerned, everything
from services.derive.derive import OutputRecord, derived, failed
from services.derive.present_states import position_of, start_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from pydantic import BaseModel

    from contracts import Alerts, Application
    from contracts.records.tables import TableRow
    from contracts.wire import Order, Snapshot
    from contracts.wire.alerts import AlertRecord
    from services.derive.present_states import Position
    from services.runtime.job_progress import Published

log = logging.getLogger(__name__)

EXPIRED_AT_ONCE = 1_000
"""The maximum number of expired windows of a partition that are removed at once."""
REMOVED = 0, 0
"""The order of a window that was removed: less than that of every snapshot."""


class Sweep(NamedTuple):
    """Slices of a partition's windows that rules of these names may concern; without names, all rules.

    Of a derived state with tables, all windows.
    """

    partition: AlertPartition
    declared: Alerts | Derived
    names: Collection[str] | None
    slices: Iterator[list[Position]]


class Alerting:
    """Evaluates snapshots, and rules that have changed. `accept` applies the changes when they are written.

    Pending alerts open, and windows expire, by the progress of the job. A replay has none: windows expire by the times
    of the snapshots, and the next snapshot opens a pending alert.
    `partitions` has the number of each topic's partitions.
    """

    def __init__(self, application: Application, partitions: Mapping[str, int], *, is_replay: bool) -> None:
        self._application = application
        self._is_replay = is_replay
        self._partition_counts = partitions
        self._derived = tuple(one for one in application.derived if one.tables)
        self._declared: tuple[Alerts | Derived, ...] = (*application.alerts, *self._derived)
        self._values: dict[str, dict[str, BaseModel]] = {one.name: {} for one in application.tables}
        self._kept_for = application.kept_for + application.skew
        self._rules = {one.name: Rules() for one in application.alerts}
        self._changed: dict[str, set[str]] = {one.name: set() for one in self._declared}
        self._partitions: dict[int, AlertPartition] = {}
        self._sweeps: deque[Sweep] = deque()
        self._slice: list[Position] | None = None
        self._is_swept = False
        self._changes: dict[int, Changes] = {}
        self._failed: set[tuple[str, str, int]] = set()
        self._reporting: set[tuple[str, str, int]] = set()
        """The failed rules whose dead letters are not yet written."""
        self._dead_letters_of_rules: list[OutputRecord] = []

    @property
    def is_busy(self) -> bool:
        """Return whether `work` has more to do at once."""
        return bool(self._sweeps) or any(self._changed.values())

    def change_row(self, table: str, name: str, row: TableRow | None) -> None:
        """Put a row of a table, or remove it with None. `work` evaluates the affected windows."""
        if row is None:
            self._values[table].pop(name, None)
        else:
            self._values[table][name] = row.value
        changed = [one.name for one in self._application.alerts if one.rules.name == table]
        for alerts in changed:
            self._rules[alerts].change(name, row)
        changed += [one.name for one in self._derived if table in {used.name for used in one.tables}]
        if self._partitions:  # one that is assigned later is evaluated by all rows
            for one in changed:
                self._changed[one].add(name)

    def assign(self, partition: AlertPartition) -> None:
        """Add a filled partition. `work` evaluates all rules on it: some may have changed meanwhile.

        A window that has alerts expires also if the broker has deleted its snapshot.
        """
        self._partitions[partition.number] = partition
        for records in partition.records.values():
            partition.states.expect(position for position, record in records.items() if record.active)
        self._sweeps.extend(self._sweep(partition, one, None) for one in self._declared)

    def revoke(self, numbers: Collection[int]) -> None:
        """Remove these partitions."""
        self.discard()
        if self._sweeps and self._sweeps[0].partition.number in numbers:
            self._slice = None
        self._sweeps = deque(one for one in self._sweeps if one.partition.number not in numbers)
        for number in numbers:
            if (gone := self._partitions.pop(number, None)) is not None:
                gone.states.close()
        if not self._partitions:  # those that are assigned later are evaluated by all rules
            for names in self._changed.values():
                names.clear()

    def evaluate(self, record: Record, snapshot: Snapshot | None) -> Iterator[OutputRecord]:
        """Yield the alert records of the next record of snapshots. It has no snapshot if it removes a window."""
        partition = self._partitions[record.partition]
        changes = self._changes_of(partition)
        changes.offset = record.offset + 1
        if snapshot is None:
            yield from self._remove(partition, record)
            return
        position = position_of(snapshot.window)
        order = changes.order(position)
        if (order is not None and snapshot.order <= order) or self._is_expired(position, self._time(partition)):
            return
        changes.states[position] = snapshot.order, record.value
        changes.newest = max(changes.newest or snapshot.as_of, snapshot.as_of)
        is_next = self._is_next(snapshot, order)
        for alerts in self._application.alerts:
            evaluation = self._evaluation(alerts, record.offset, is_next=is_next)
            yield from self._next(partition, evaluation, [(position, snapshot)])
        yield from self._dead_letters()

    def derived(self, record: Record, snapshot: Snapshot) -> Iterator[OutputRecord]:
        """Yield what is derived by tables from a snapshot that was evaluated, if it was new."""
        changes = self._changes_of(self._partitions[record.partition])
        if self._derived and changes.states.get(position_of(snapshot.window)) == (snapshot.order, record.value):
            yield from derived(self._application, self._derived, snapshot, self._partition_counts, self._values)

    def reach(self, progress: Mapping[int, Published]) -> None:
        """Follow the progress of the job, by partition."""
        for number, published in progress.items():
            if number in self._partitions:
                self._partitions[number].reach(published)

    def work(self) -> list[OutputRecord]:
        """Return the records of the next slice of changed rules, of pending alerts, and of expired windows."""
        return [*self._swept(), *self._due(), *self._expired(), *self._dead_letters()]

    def accept(self) -> None:
        """Apply the changes since the last call: they are written."""
        for number, changes in self._changes.items():
            self._partitions[number].apply(changes)
        self._changes.clear()
        self._reporting.clear()
        if self._is_swept:
            self._slice, self._is_swept = None, False

    def discard(self) -> None:
        """Drop the changes since the last call: they are not written, and are evaluated again."""
        self._changes.clear()
        self._failed -= self._reporting
        self._reporting.clear()
        self._dead_letters_of_rules.clear()
        self._is_swept = False

    def _changes_of(self, partition: AlertPartition) -> Changes:
        found = self._changes.get(partition.number)
        if found is None:
            found = self._changes[partition.number] = Changes(partition)
        return found

    def _time(self, partition: AlertPartition) -> datetime | None:
        """Return the time by which the windows of a partition expire; None while it is unknown."""
        return self._changes_of(partition).newest if self._is_replay else partition.until

    def _is_next(self, snapshot: Snapshot, former: Order | None) -> bool:
        """Return whether no snapshot is missing since the former one, as after a catch-up, or by compaction.

        In other modes than `Emit.EVENT` the job does not publish each of them.
        """
        if self._application.emit is not Emit.EVENT:
            return True
        return former is not None and snapshot.order == (former[0], former[1] + 1)

    def _is_expired(self, position: Position, time: datetime | None) -> bool:
        return time is not None and start_of(position) + self._kept_for < time

    def _swept(self) -> Iterator[OutputRecord]:
        if not self._sweeps:
            self._sweeps.extend(self._sweeps_of_changes())
        if not self._sweeps:
            return
        sweep = self._sweeps[0]
        if self._slice is None:
            self._slice = next(sweep.slices, None)
        if self._slice is None:
            self._sweeps.popleft()
            return
        self._is_swept = True
        partition, offset = sweep.partition, sweep.partition.offset - 1
        found = partition.states.get(self._slice)
        if isinstance(sweep.declared, Derived):
            yield from self._derive(sweep.declared, (one for _, one in found if one is not None))
            return
        yield from self._next(partition, self._evaluation(sweep.declared, offset, sweep.names), found)

    def _sweeps_of_changes(self) -> Iterator[Sweep]:
        for declared in self._declared:
            names = frozenset(self._changed[declared.name])
            self._changed[declared.name].clear()
            if names:
                yield from (self._sweep(one, declared, names) for one in self._partitions.values())

    def _sweep(self, partition: AlertPartition, alerts: Alerts | Derived, names: Collection[str] | None) -> Sweep:
        if isinstance(alerts, Derived):
            return Sweep(partition, alerts, None, everything(partition.states))
        active = [
            position
            for position, record in partition.records[alerts.name].items()
            if names is None or any(one.rule in names for one in record.active)
        ]
        return Sweep(partition, alerts, names, concerned(partition.states, active, self._rules[alerts.name], names))

    def _derive(self, declared: Derived, snapshots: Iterable[Snapshot]) -> Iterator[OutputRecord]:
        """Yield what is derived from present states. The first for which the function raises is a dead letter."""
        is_reported = False
        for snapshot in snapshots:
            try:
                found = tuple(derived(self._application, (declared,), snapshot, self._partition_counts, self._values))
            except AUTHOR_ERRORS as error:
                log.exception("nothing derived from a present state")
                if not is_reported:
                    yield failed(self._application, snapshot.device_id, self._record(snapshot), error)
                is_reported = True
            else:
                yield from found

    def _record(self, snapshot: Snapshot) -> Record:
        """Return the record of a stored snapshot, without its position."""
        topic, key = self._application.topics.snapshots, window_key(*snapshot.window)
        return Record(topic, NEVER_WRITTEN, NEVER_WRITTEN, timestamp_ms(snapshot.as_of), key, snapshot.encode())

    def _due(self) -> Iterator[OutputRecord]:
        """Open the alerts whose condition has been true for long enough, also while no snapshot comes.

        An unread record may have ended a condition that the clock would find to be true for long enough.
        """
        for partition in self._partitions.values():
            if partition.until is None:
                continue
            for alerts in self._application.alerts:
                records, rules = partition.records[alerts.name], self._rules[alerts.name]
                due = [(one, rules.due(records[one], partition.until)) for one in partition.pending[alerts.name]]
                for position, names in due:
                    if names:
                        evaluation = self._evaluation(alerts, partition.offset - 1, names, partition.until)
                        yield from self._next(partition, evaluation, partition.states.get([position]))

    def _expired(self) -> Iterator[OutputRecord]:
        """Remove expired windows, and close their alerts."""
        for partition in self._partitions.values():
            time = self._time(partition)
            if time is None:
                continue
            for position in partition.states.started_before(time - self._kept_for, EXPIRED_AT_ONCE):
                self._changes_of(partition).states[position] = REMOVED, None
                yield from self._close(partition, position, partition.offset - 1, time)

    def _remove(self, partition: AlertPartition, record: Record) -> Iterator[OutputRecord]:
        try:
            position = position_of(parse_window_key(record.key or b""))
        except ValueError:
            return
        self._changes_of(partition).states[position] = REMOVED, None
        yield from self._close(partition, position, record.offset, record.timestamp)

    def _close(
        self, partition: AlertPartition, position: Position, offset: int, at: datetime | None
    ) -> Iterator[OutputRecord]:
        for alerts in self._application.alerts:
            former = self._changes_of(partition).former(alerts.name, position)
            if former is not None and former.active and former.offset <= offset:
                record = expired(former, offset, at or former.as_of, self._layout(alerts))
                yield self._output(partition, alerts, position, record)

    def _evaluation(
        self,
        alerts: Alerts,
        offset: int,
        only: Collection[str] | None = None,
        until: datetime | None = None,
        *,
        is_next: bool = True,
    ) -> Evaluation:
        def report(name: str, row: TableRow, error: BaseException) -> None:
            self._report(alerts, name, row, error)

        return Evaluation(alerts, self._rules[alerts.name], offset, report, only, until, self._layout(alerts), is_next)

    def _layout(self, alerts: Alerts) -> int:
        return self._partition_counts[self._application.topics.derived(alerts.name)]

    def _next(
        self, partition: AlertPartition, evaluation: Evaluation, found: Iterable[tuple[Position, Snapshot | None]]
    ) -> Iterator[OutputRecord]:
        """Evaluate windows that are not expired, and were not evaluated up to a later offset before.

        A pending alert that is due opens also if its window is expired since. The broker has deleted those that have no
        snapshot: they are expired, or have a newer one that is not read yet.
        """
        changes, alerts = self._changes_of(partition), evaluation.alerts
        time = self._time(partition)
        for position, snapshot in found:
            is_expired = self._is_expired(position, time)
            if snapshot is None or (is_expired and evaluation.until is None):
                if snapshot is None and is_expired:
                    yield from self._close(partition, position, evaluation.offset, time)
                continue
            former = changes.former(alerts.name, position)
            if former is not None and former.offset > evaluation.offset:
                continue
            while (former := evaluation.evaluate(former, snapshot)) is not None:
                yield self._output(partition, alerts, position, former)

    def _dead_letters(self) -> list[OutputRecord]:
        """Return those of rules that raised, once."""
        found, self._dead_letters_of_rules = self._dead_letters_of_rules, []
        return found

    def _output(
        self, partition: AlertPartition, alerts: Alerts, position: Position, record: AlertRecord
    ) -> OutputRecord:
        self._changes_of(partition).records[alerts.name, position] = record
        topic, key = self._application.topics.derived(alerts.name), window_key(record.device_id, record.first_seen)
        return OutputRecord(topic, key, record.encode(), partition.number)

    def _report(self, alerts: Alerts, name: str, row: TableRow, error: BaseException) -> None:
        """Make a dead letter of a rule whose condition raises: one for each of its versions."""
        if (version := (alerts.name, name, row.version)) in self._failed:
            return
        self._failed.add(version)
        self._reporting.add(version)
        topics, key = self._application.topics, name.encode()
        place = topics.table(alerts.rules), partition_of(key, topics.partitions), row.version
        rule = orjson.dumps(rule_of(row).model_dump(mode="json", exclude_none=True))
        record = Record(*place, timestamp_ms(row.changed_at), key, rule)
        detail = f"the condition of {alerts.name} raised {type(error).__name__}: {error}"
        dead_letter = DeadLetter.of(record, Reason.INVALID_ROW, detail, head=rule.decode())
        self._dead_letters_of_rules.append(OutputRecord(topics.dead_letters, shortened(key), dead_letter.encode()))
