"""Judges what derive workers write beside alerts: derived states, the dead letters of rows, and their offsets."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import orjson

from contracts.records.record import Reason
from contracts.wire import DeadLetter, decode_snapshot
from contracts.wire.window_key import derived_key
from tests.simulation.alerts import SETTLED, alert_problems, followed_for, limit_of, published_by_window, versions
from tests.simulation.application import LEVELS, LIMITS, SEEN, level, seen
from tests.simulation.script import ENDS_S, time_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from contracts import Application, Derived
    from contracts.records.record import Record
    from contracts.wire import Snapshot
    from tests.simulation.alerts import Version
    from tests.simulation.application import Limit
    from tests.simulation.recorded import Ledgers
    from tests.simulation.script import Script

    Value = tuple[int, int, dict[str, Any]]
    """Epoch and version of the snapshot, and the derived value."""
    _Row = tuple[str, int, str]
    """The name of a row, its version, and the condition that raises; empty for a row that is rejected."""


def derive_problems(script: Script, ledgers: Ledgers, application: Application) -> Iterator[str]:
    """Return what is wrong with the work of the derive workers."""
    snapshots = ledgers.records[application.topics.snapshots]
    yield from alert_problems(script, ledgers, application)
    rows = ledgers.records[application.topics.table(LIMITS)]
    yield from _differences(SEEN, _last_seen(snapshots), ledgers, application, is_complete=True)
    yield from _differences(LEVELS, _levels(snapshots, rows, application), ledgers, application)
    yield from _reversals(script, ledgers, application)
    yield from _row_problems(script, ledgers, application)


def _last_seen(snapshots: Sequence[Record]) -> dict[bytes, Value]:
    """Return the value of the last snapshot that has each key."""
    found: dict[bytes, Value] = {}
    for record in snapshots:
        snapshot = decode_snapshot(record.value or b"")
        for key, value in seen(snapshot):
            found[_key(key, snapshot)] = snapshot.epoch, snapshot.version, value.model_dump()
    return found


def _levels(snapshots: Sequence[Record], rows: Sequence[Record], application: Application) -> dict[bytes, Value]:
    """Return the values of the present windows by the present rows."""
    tables: Mapping[str, Mapping[str, Limit]] = {
        LIMITS.name: {one.name: one.limit for one in versions(rows) if one.until is None}
    }
    found: dict[bytes, Value] = {}
    for window, published in published_by_window(snapshots, application.emit).items():
        if window[1] + followed_for(application) > time_at(ENDS_S):
            snapshot = published[-1].snapshot
            for key, value in level(snapshot, tables):
                found[_key(key, snapshot)] = snapshot.epoch, snapshot.version, value.model_dump()
    return found


def _key(key: str, snapshot: Snapshot) -> bytes:
    return derived_key(key, snapshot.device_id, snapshot.first_seen)


def _differences(
    declared: Derived,
    expected: Mapping[bytes, Value],
    ledgers: Ledgers,
    application: Application,
    *,
    is_complete: bool = False,
) -> Iterator[str]:
    found: dict[bytes, Value] = {}
    for record in ledgers.records[application.topics.derived(declared.name)]:
        values = orjson.loads(record.value or b"")
        found[record.key or b""] = values["epoch"], values["version"], values["value"]
    for key, value in expected.items():
        if found.get(key) != value:
            yield f"{declared.name} of {key!r} is {found.get(key)}, and {value} is expected"
    if is_complete:
        for key in found.keys() - expected.keys():
            yield f"{declared.name} has {key!r}, and no snapshot gives it"


def _reversals(script: Script, ledgers: Ledgers, application: Application) -> Iterator[str]:
    """The levels follow the newest snapshots: while no worker continues at an earlier commit, none goes back."""
    faults = [fault for fault in script.faults if fault.part == "broker" or fault.part.startswith("derive")]
    if any(fault.kind == "unacknowledged" for fault in faults):
        return  # its time is that of the next write
    periods = [(time_at(fault.at), time_at(fault.at + fault.lasts) + SETTLED) for fault in faults]
    last: dict[bytes | None, tuple[int, int]] = {}
    for record in ledgers.records[application.topics.derived(LEVELS.name)]:
        values = orjson.loads(record.value or b"")
        order = values["epoch"], values["version"]
        is_disturbed = any(begin <= record.timestamp <= end for begin, end in periods)
        if order < last.get(record.key, order) and not is_disturbed:
            yield f"{LEVELS.name} of {record.key!r} is {order}, after {last[record.key]}"
        last[record.key] = order


def _row_problems(script: Script, ledgers: Ledgers, application: Application) -> Iterator[str]:
    """Each rejected row has a dead letter, and so has each rule that raises, once for each worker at most."""
    topics, rows = application.topics, ledgers.records[application.topics.table(LIMITS)]
    snapshots = ledgers.records[topics.snapshots]
    counts = Counter(
        _row(record.key, letter)
        for record in ledgers.records[topics.dead_letters]
        if (letter := DeadLetter.model_validate_json(record.value or b"")).reason == Reason.INVALID_ROW
    )
    rejected = {
        ((one.key or b"").decode(), one.offset, "") for one in rows if one.value is not None and limit_of(one) is None
    }
    raising = _raising(rows, application)
    for row in (rejected | _raised(rows, snapshots, application)) - counts.keys():
        yield f"the row {row} has no dead letter"
    for row, count in counts.items():
        if row not in rejected and row not in raising:
            yield f"the row {row} has a dead letter without a reason"
        if count > script.derivers:
            yield f"the row {row} has {count} dead letters"


def _raising(rows: Sequence[Record], application: Application) -> dict[_Row, Version]:
    """Return the versions of rules whose conditions raise, by what their dead letters name."""
    return {
        (one.name, one.number, f"the condition of {alerts.name}"): one
        for one in versions(rows)
        for alerts in application.alerts
        if one.limit.high < 0
    }


def _raised(rows: Sequence[Record], snapshots: Sequence[Record], application: Application) -> set[_Row]:
    """Return the present rules that raise for a present window: workers evaluate both, whatever the faults were."""
    last = time_at(ENDS_S) - followed_for(application)
    devices = {device for device, first_seen in published_by_window(snapshots, application.emit) if first_seen > last}
    return {
        row
        for row, version in _raising(rows, application).items()
        if version.until is None and any(map(version.limit.applies_to, devices))
    }


def _row(key: bytes | None, letter: DeadLetter) -> _Row:
    """Return the name of a row, its version, and the condition that raised, if one did."""
    condition, raised, _ = (letter.detail or "").partition(" raised ")
    return (key or b"").decode(), letter.offset, condition if raised else ""
