"""Evaluates alerts, and finds the derived states that depend on reference tables, for one partition.

The topic of the alerts is their state: a partition of it is read whole when it is assigned. A record is written before
the offset of its snapshot is committed, so after a crash some snapshots come again. Each record has the offset up to
which its window was evaluated, and an earlier snapshot changes nothing.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import orjson

from contracts.alerts.evaluation import Evaluation, FullRecordError, expired, rule_of
from contracts.errors import described
from contracts.model.emit import Emit
from contracts.model.named_state import Derived
from contracts.records.record import Reason, Record, timestamp_ms
from contracts.types.key import shortened
from contracts.wire import DeadLetter
from contracts.wire.window_key import window_key
from services.alerts.partition import REMOVED, Changes
from services.alerts.present_states import position_of, position_of_key, start_of
from services.alerts.sweep import concerned, everything
from services.runtime.kafka.values import Output

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from contracts import Alerts, Application
    from contracts.records.tables import TableRow
    from contracts.wire import Order, Snapshot
    from contracts.wire.alert_record import AlertRecord
    from services.alerts.partition import AlertPartition
    from services.alerts.present_states import Position
    from services.alerts.tables import RowChange, Tables
    from services.runtime.job_progress import Published

    DeriveStates = Callable[[Derived, Iterable[Snapshot]], Iterator[Output]]
    """Returns what a derived state with tables has of present states."""

EXPIRED_AT_ONCE = 1_000
"""The maximum number of expired windows that are removed at once."""


class Sweep(NamedTuple):
    """Slices of a partition's windows that rules of these names may concern; without names, all rules.

    Of a derived state with tables, all windows.
    """

    declared: Alerts | Derived
    names: Collection[str] | None
    slices: Iterator[list[Position]]


class AlertEvaluator:
    """Evaluates snapshots, and rules that have changed. `accept` applies the changes when they are written.

    Pending alerts open, and windows expire, by the progress of the job. A replay has none: windows expire by the times
    of the snapshots, and the next snapshot opens a pending alert. `partition_counts` has the number of each topic's
    partitions. It begins with all rules: some may have changed since the partition was evaluated. A window that has
    alerts expires also if the broker has deleted its snapshot.
    """

    def __init__(  # noqa: PLR0913  # the parts that it connects
        self,
        application: Application,
        tables: Tables,
        partition: AlertPartition,
        partition_counts: Mapping[str, int],
        derive: DeriveStates,
        *,
        is_replay: bool,
    ) -> None:
        self._application = application
        self._is_replay = is_replay
        self._tables = tables
        self._partition_counts = partition_counts
        self._derive = derive
        self._declared: tuple[Alerts | Derived, ...] = (
            *application.alerts,
            *(derived for derived in application.derived if derived.tables),
        )
        self._kept_for = application.kept_for + application.skew
        self._changed: dict[str, dict[str, None]] = {declared.name: {} for declared in self._declared}
        self._slice: list[Position] | None = None
        self._is_swept = False
        self._changes = Changes(partition)
        self._reporting: set[tuple[str, str, int]] = set()
        """The failed rules whose dead letters are not yet written."""
        self._dead_letters_of_rules: list[Output] = []
        self.partition = partition
        for records in partition.records.values():
            partition.states.expect(position for position, record in records.items() if record.active)
        self._sweeps = deque(self._sweep(declared, None) for declared in self._declared)

    @property
    def is_busy(self) -> bool:
        """Return whether `work` has more to do at once."""
        return self._can_sweep and (bool(self._sweeps) or any(self._changed.values()))

    def change_row(self, change: RowChange) -> None:
        """Note that a row of the tables has changed. `work` evaluates the affected windows."""
        for declared in self._declared:
            tables = declared.tables if isinstance(declared, Derived) else (declared.rules,)
            if any(used.name == change.table for used in tables):
                self._changed[declared.name][change.key] = None

    def evaluate(self, record: Record, snapshot: Snapshot | None) -> Iterator[Output]:
        """Yield the alert records of the next record of snapshots. It has no snapshot if it removes a window."""
        changes = self._changes
        changes.offset = record.offset + 1
        if snapshot is None:
            yield from self._remove(record)
            return
        position = position_of(snapshot.window)
        order = changes.order(position)
        if order is not None and snapshot.order <= order:
            return
        time = self._time()
        if self._is_expired(position, time):
            yield from self._close(position, record.offset, time)  # another worker, or a lost write, has opened alerts
            return
        changes.states[position] = snapshot.order, record.value
        changes.newest = max(changes.newest or snapshot.as_of, snapshot.as_of)
        is_next = self._is_next(snapshot, order)
        for alerts in self._application.alerts:
            evaluation = self._evaluation(alerts, record.offset, is_next=is_next)
            yield from self._next(evaluation, [(position, snapshot)])
        yield from self._dead_letters()

    def skip(self, record: Record) -> None:
        """Pass a record that is no snapshot."""
        self._changes.offset = record.offset + 1

    def is_present(self, record: Record, snapshot: Snapshot) -> bool:
        """Return whether a snapshot that was evaluated last is the present state of its window: it was new."""
        return self._changes.states.get(position_of(snapshot.window)) == (snapshot.order, record.value)

    def reach(self, published: Published | None) -> None:
        """Follow the progress of the job; None if it has recorded none."""
        self.partition.reach(published)

    def work(self) -> list[Output]:
        """Return the records of the next slice of changed rules, of pending alerts, and of expired windows."""
        return [*self._swept(), *self._due(), *self._expired(), *self._dead_letters()]

    def accept(self) -> None:
        """Apply the changes since the last call: they are written."""
        self.partition.apply(self._changes)
        self._changes = Changes(self.partition)
        self._reporting.clear()
        if self._is_swept:
            self._slice, self._is_swept = None, False

    def discard(self) -> None:
        """Drop the changes since the last call: they are not written, and are evaluated again."""
        self._changes = Changes(self.partition)
        self._tables.failed_rules -= self._reporting
        self._reporting.clear()
        self._dead_letters_of_rules.clear()
        self._is_swept = False

    def close(self) -> None:
        """Drop the partition."""
        self.discard()
        self.partition.states.close()

    def _time(self) -> datetime | None:
        """Return the time by which the windows expire; None while it is unknown."""
        return self._changes.newest if self._is_replay else self.partition.until

    def _is_next(self, snapshot: Snapshot, former: Order | None) -> bool:
        """Return whether no snapshot is missing since the former one, as after a catch-up, or by compaction.

        In other modes than `Emit.EVENT` the job does not publish each of them.
        """
        if self._application.emit is not Emit.EVENT:
            return True
        return former is not None and snapshot.order == (former[0], former[1] + 1)

    def _is_expired(self, position: Position, time: datetime | None) -> bool:
        return time is not None and time - start_of(position) > self._kept_for

    @property
    def _can_sweep(self) -> bool:
        """Whether it is known which windows are expired: another worker has closed their alerts."""
        return self._is_replay or self.partition.is_current

    def _swept(self) -> Iterator[Output]:
        if not self._can_sweep:
            return
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
        states = self.partition.states.get(self._slice)
        if isinstance(sweep.declared, Derived):
            yield from self._derive(sweep.declared, (snapshot for _, snapshot in states if snapshot is not None))
            return
        yield from self._next(self._evaluation(sweep.declared, self.partition.offset - 1, sweep.names), states)

    def _sweeps_of_changes(self) -> Iterator[Sweep]:
        for declared in self._declared:
            names = dict(self._changed[declared.name])
            self._changed[declared.name].clear()
            if names:
                yield self._sweep(declared, names)

    def _sweep(self, alerts: Alerts | Derived, names: Collection[str] | None) -> Sweep:
        states = self.partition.states
        if isinstance(alerts, Derived):
            return Sweep(alerts, None, everything(states))
        active = [
            position
            for position, record in self.partition.records[alerts.name].items()
            if names is None or any(alert.rule in names for alert in record.active)
        ]
        return Sweep(alerts, names, concerned(states, active, self._tables.rules[alerts.name], names))

    def _due(self) -> Iterator[Output]:
        """Open the alerts whose condition has been true for long enough, also while no snapshot comes.

        An unread record may have ended a condition that the clock would find to be true for long enough: so they open
        by the progress of the job. A snapshot of a later epoch is of a rebuilt job, which may not have read again what
        a former job had.
        """
        partition = self.partition
        if partition.reached is None:
            return
        until, epoch = partition.reached.time, partition.reached.epoch
        for alerts in self._application.alerts:
            records, rules = partition.records[alerts.name], self._tables.rules[alerts.name]
            due = [(position, rules.due(records[position], until)) for position in partition.pending[alerts.name]]
            for position, names in due:
                order = partition.states.order(position) if names else None
                if order is not None and order[0] <= epoch:
                    evaluation = self._evaluation(alerts, partition.offset - 1, names, until)
                    yield from self._next(evaluation, partition.states.get([position]))

    def _expired(self) -> Iterator[Output]:
        """Remove expired windows, and close their alerts."""
        time = self._time()
        if time is None:
            return
        for position in self.partition.states.older_than(self._kept_for, time, EXPIRED_AT_ONCE):
            self._changes.states[position] = REMOVED, None
            yield from self._close(position, self.partition.offset - 1, time)

    def _remove(self, record: Record) -> Iterator[Output]:
        try:
            position = position_of_key(record.key)
        except ValueError:
            return
        self._changes.states[position] = REMOVED, None
        yield from self._close(position, record.offset, record.timestamp)

    def _close(self, position: Position, offset: int, at: datetime | None) -> Iterator[Output]:
        for alerts in self._application.alerts:
            former = self._changes.former(alerts.name, position)
            if former is not None and former.active and former.offset <= offset:
                yield self._output(alerts, position, expired(former, offset, at or former.as_of, self._count(alerts)))

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

        rules = self._tables.rules[alerts.name]
        return Evaluation(alerts, rules, offset, report, only, until, self._count(alerts), is_next)

    def _count(self, alerts: Alerts) -> int:
        """The number of partitions of the alerts."""
        return self._partition_counts[self._application.topics.derived(alerts.name)]

    def _next(self, evaluation: Evaluation, states: Iterable[tuple[Position, Snapshot | None]]) -> Iterator[Output]:
        """Evaluate windows that are not expired, and were not evaluated up to a later offset before.

        A pending alert that is due opens also if its window is expired since. The broker has deleted those that have no
        snapshot: they are expired, or have a newer one that is not read yet.
        """
        alerts, time = evaluation.alerts, self._time()
        for position, snapshot in states:
            if snapshot is None or (evaluation.until is None and self._is_expired(position, time)):
                continue
            former = self._changes.former(alerts.name, position)
            if former is not None and former.offset > evaluation.offset:
                continue
            while (former := evaluation.evaluate(former, snapshot)) is not None:
                yield self._output(alerts, position, former)

    def _dead_letters(self) -> list[Output]:
        """Return those of rules that raised, once."""
        dead_letters, self._dead_letters_of_rules = self._dead_letters_of_rules, []
        return dead_letters

    def _output(self, alerts: Alerts, position: Position, record: AlertRecord) -> Output:
        self._changes.records[alerts.name, position] = record
        topic, key = self._application.topics.derived(alerts.name), window_key(record.device_id, record.first_seen)
        return Output(topic, key, record.encode(), self.partition.number)

    def _report(self, alerts: Alerts, name: str, row: TableRow, error: BaseException) -> None:
        """Make a dead letter of a rule whose condition raises: one for each of its versions."""
        if (version := (alerts.name, name, row.version)) in self._tables.failed_rules:
            return
        self._tables.failed_rules.add(version)
        self._reporting.add(version)
        topics, key = self._application.topics, name.encode()
        place = topics.table(alerts.rules), row.partition, row.version
        rule = orjson.dumps(rule_of(row).model_dump(mode="json", exclude_none=True))
        record = Record(*place, timestamp_ms(row.changed_at), key, rule)
        failure = f"the condition of {alerts.name} raised {described(error)}"
        detail = f"{alerts.name}: {error}" if isinstance(error, FullRecordError) else failure
        dead_letter = DeadLetter.of(record, Reason.INVALID_ROW, detail)
        self._dead_letters_of_rules.append(Output(topics.dead_letters, shortened(key), dead_letter.encode()))
