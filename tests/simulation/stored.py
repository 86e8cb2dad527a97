"""Judges what the sinks have done: the rows of the store, their expiry, and the dead letters of those it cannot have.

It repeats by hand what records do to rows, and shares no code with the sink's plan.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from contracts.metrics import sink as metrics
from contracts.records.record import Reason
from contracts.records.state_record import EPOCH, MICROSECOND
from contracts.wire import DeadLetter, decode_snapshot
from contracts.wire.window_key import parse_window_key
from tests.simulation.layout import unread_problems, visible
from tests.simulation.oracle import KEPT_FOR, OF_THE_CLOCK, SKEW
from tests.simulation.script import ENDS_S, START, Compact, Tombstone, time_at
from tests.simulation.sink import order_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from contracts import Application
    from contracts.metrics import Metric
    from contracts.records.record import Record
    from contracts.sinks import Row
    from contracts.sinks.store import RowKey
    from tests.simulation.recorded import Ledgers
    from tests.simulation.script import Script

    Order = tuple[datetime, int, int]
    """Start of the window, epoch, version."""

RETENTION = dict.fromkeys(OF_THE_CLOCK, timedelta(days=1))
"""The time for which rows are kept after their window, by application: a window of the clock can be queried so long."""
QUIET_S = 300.0
"""The time after the last fault in which a sink writes everything."""
EXPIRY_S = 60.0
"""The time within which a sink removes rows that have expired."""


class ExpectedRow(NamedTuple):
    """A row that a record gives."""

    order: Order
    record: Record


def store_problems(script: Script, ledgers: Ledgers, application: Application) -> Iterator[str]:
    """Return what is wrong with the work of the sinks."""
    yield from _Judge(script, ledgers, application).problems()


class _Judge:
    def __init__(self, script: Script, ledgers: Ledgers, application: Application) -> None:
        self._script = script
        self._has_gaps = script.grows or any(isinstance(step, Compact) for step in script.steps)
        """Whether records may be removed before a store has them, or has them again."""
        self._server = ledgers.store
        self._snapshots = ledgers.records[application.topics.snapshots]
        self._logs = ledgers.logs[application.topics.snapshots]
        self._letters = Counter(
            (letter.partition, letter.offset)
            for record in ledgers.records[application.topics.dead_letters]
            if (letter := DeadLetter.model_validate_json(record.value or b"")).reason == Reason.NOT_STORED
        )
        self._kept_for = KEPT_FOR[script.application] + SKEW + RETENTION.get(script.application, timedelta(0))
        self._undecodable: set[tuple[int, int]] = set()
        self._refused: set[tuple[int, int]] = set()
        """The records whose rows the store refuses."""
        self._rows: dict[RowKey, ExpectedRow] = {}
        self._newest: dict[RowKey, ExpectedRow] = {}
        """The newest record of each row, also one that the store refuses."""
        for record in self._snapshots:
            self._add(record)
        self._left = {(number, entry.offset): entry for number, log in enumerate(self._logs) for entry in visible(log)}
        """The records that the topic still has, with copies that replace others."""
        if script.grows:
            self._refused.update(place for place, entry in self._left.items() if self._server.is_refused(entry.value))

    def problems(self) -> Iterator[str]:
        if self._server.overlaps:
            yield f"{self._server.overlaps} requests of sinks to the store overlap on a connection"
        if self._server.lowered:
            yield f"sinks have moved a position of the store back {self._server.lowered} times"
        yield from self._stored()
        yield from self._removed()
        yield from self._dead_letters()
        yield from self._repeated()
        yield from unread_problems("the store is", self._server.state.positions, self._logs)

    def _add(self, record: Record) -> None:
        """Let the effect of a record follow that of the records before it."""
        place = record.partition, record.offset
        try:
            if record.value is None:
                device, start = parse_window_key(record.key or b"")
                row = self._rows.get(key := self._key(device, start))
                if row is not None and row.order[0] == start:
                    del self._rows[key]
                return
            snapshot = decode_snapshot(record.value)
        except ValueError:
            self._undecodable.add(place)
            return
        key = self._key(*snapshot.window)
        found = ExpectedRow((snapshot.first_seen, *snapshot.order), record)
        if key not in self._newest or found.order > self._newest[key].order:
            self._newest[key] = found
        if self._server.is_refused(record.value):
            self._refused.add(place)
        elif key not in self._rows or found.order > self._rows[key].order:
            self._rows[key] = found

    def _key(self, device: str, start: datetime) -> RowKey:
        """Return the identity of a row: windows of the clock have a row each, and of the others only the newest has."""
        return device, (start - EPOCH) // MICROSECOND if self._script.application in OF_THE_CLOCK else 0

    def _left_s(self, start: datetime) -> float:
        """Return the time from the end of the script to the expiry of a row."""
        return (start + self._kept_for - time_at(ENDS_S)) / timedelta(seconds=1)

    def _stored(self) -> Iterator[str]:
        """The store has the newest row of each key until that expires."""
        stored = self._server.state.rows
        for key, (order, record) in self._rows.items():
            if self._has_gaps and order < self._newest[key].order:
                continue  # a record that the store refuses may have replaced it on the topic
            found, left_s = stored.get(key), self._left_s(order[0])
            has_newest = found is not None and order_of(found) == order and self._is_true(found)
            was_written = (key[0], order) in self._server.written
            if not was_written and self._read_by(record) + QUIET_S < ENDS_S + left_s and not self._is_removed(record):
                yield f"the sinks have not written {order} of {key}"
            if left_s > EXPIRY_S and not has_newest:
                yield f"the store has {found} for {key}, and {order} is the newest"
            if left_s < -EXPIRY_S and found is not None:
                yield f"the store has {found} for {key}, which has expired"
        for key in stored.keys() - self._rows.keys():
            yield f"the store has a row of {key}, which has no snapshot"

    def _is_true(self, row: Row) -> bool:
        """Return whether a row has the value of a record, and expires when it must."""
        expires_at = row.window_start + self._kept_for // MICROSECOND
        return row.expires_at == expires_at and any(record.value == row.value for record in self._snapshots)

    def _is_removed(self, record: Record) -> bool:
        """Return whether somebody has removed windows of the row: then it may never have been written."""
        device = decode_snapshot(record.value or b"").device_id
        return any(isinstance(step, Tombstone) and step.device == device for step in self._script.steps)

    def _removed(self) -> Iterator[str]:
        """No row is removed before it expires, nor long after that by a sink that works all the time."""
        is_free = self._is_free()
        for row, at_s in self._server.removed:
            late_s = at_s - ENDS_S - self._left_s(order_of(row)[0])
            if late_s < 0:
                yield f"the sinks have removed {row} {-late_s} s before it expired"
            if late_s > EXPIRY_S and is_free:
                yield f"the sinks have removed {row} {late_s} s after it expired"

    def _dead_letters(self) -> Iterator[str]:
        """Each record that cannot be written has a dead letter, and no other record has one."""
        newest = {(row.record.partition, row.record.offset): row for row in self._newest.values()}
        required = {
            place
            for place in self._refused & newest.keys()
            if self._read_by(newest[place].record) + QUIET_S < ENDS_S + self._left_s(newest[place].order[0])
        }
        for place in ((self._undecodable | required) & self._left.keys()) - self._letters.keys():
            yield f"the record {place} of the snapshots cannot be stored, and has no dead letter"
        for place, count in self._letters.items():
            if place not in self._undecodable | self._refused and not self._is_deleted_copy(place):
                yield f"the record {place} of the snapshots has a dead letter, and can be stored"
            if count > 1 and self._is_free():
                yield f"the record {place} of the snapshots has {count} dead letters"

    def _is_deleted_copy(self, place: tuple[int, int]) -> bool:
        """Return whether a record may be a copy that a later growth has replaced."""
        return self._script.grows and place not in self._left

    def _repeated(self) -> Iterator[str]:
        """Nothing is read again but for a loss of the store, or written again but for a fault."""
        losses = any(fault.part == "store" and fault.kind in {"loss", "rollback"} for fault in self._script.faults)
        if not losses and not self._has_gaps and (rewinds := self._count(metrics.REWINDS)):
            yield f"the sinks have read partitions again {rewinds:g} times, and the store has lost nothing"
        if self._script.sinks > 1 or not self._is_free():
            return
        if conflicts := self._count(metrics.CONFLICTS):
            yield f"the sink has found other positions {conflicts:g} times, and is alone"
        if (records := self._count(metrics.RECORDS)) != len(self._snapshots) and not self._script.grows:
            yield f"the sink has written {records:g} records, and the topic has {len(self._snapshots)}"

    def _count(self, metric: Metric) -> float:
        return sum(counts.get(metric) for counts in self._server.counts)

    def _is_free(self) -> bool:
        """Return whether the sinks had no fault."""
        return not any(fault.part in {"store", "broker"} or "sink" in fault.part for fault in self._script.faults)

    def _read_by(self, record: Record) -> float:
        """Return the time of the script from which on nothing prevents a sink from writing a record."""
        faults = [fault for fault in self._script.faults if fault.kind != "clock"]
        return max([(record.timestamp - START) / timedelta(seconds=1), *(one.at + one.lasts for one in faults)])
