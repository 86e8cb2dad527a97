"""Sensors with rules and alerts in real stores, for tests of the layers above them."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from contracts import Suite
from contracts.alerts.evaluation import Evaluation, Rules
from contracts.records.named_states import named
from contracts.records.record import Record, timestamp_ms
from contracts.records.tables import decode_row, encode_row
from contracts.wire import Snapshot
from contracts.wire.partition import partition
from services.query.store import Entry, Store, Update
from tests.services.derive.alerted import APP, LIMITS
from tests.services.query.in_memory import NOW, MemoryRouting, dependencies_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from contracts.records.tables import TableRow
    from contracts.wire.alert_record import AlertRecord
    from services.query.dependencies import Dependencies
    from services.query.store import Change
    from tests.services.derive.alerted import Limit

SUITE = Suite(APP)
STATES = named(APP)
(ALERTS,) = APP.alerts
HOUR = timedelta(hours=1)
WINDOW = datetime.fromtimestamp(NOW / 1000 // 3600 * 3600, UTC)


class Sensors:
    """The stores, and the records that a job and derive workers would write to them. `changed` gets each change."""

    def __init__(self, stores: Mapping[str, Store]) -> None:
        self.stores = stores
        self.changed: Callable[[list[Change]], None] = lambda _: None
        self.rows: dict[str, TableRow] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._alerts: dict[str, AlertRecord] = {}

    def measure(self, sensor: str, value: int | None, window: datetime = WINDOW) -> None:
        """Write a snapshot of a sensor, and the alert that it opens or closes."""
        former = self._snapshots.get(sensor)
        version = former.version + 1 if former is not None and former.first_seen == window else 1
        snapshot = Snapshot(
            device_id=sensor,
            first_seen=window,
            version=version,
            as_of=window + timedelta(seconds=version),
            state={} if value is None else {"value": value},
        )
        self._snapshots[sensor] = snapshot
        self._put("sensors", sensor, snapshot.encode(), window, version)
        self._evaluate(snapshot)

    def put(self, rule: str, limit: Limit | None, author: str = "ann") -> int:
        """Write a rule, or remove it, and the alerts that it opens or closes; return its offset."""
        value = None if limit is None else encode_row(LIMITS, rule, limit.model_dump_json(), author)
        return self.write(rule, value)

    def write(self, rule: str, value: bytes | None) -> int:
        """Write the record of a rule and the alerts that follow; return its offset."""
        offset = self._put("limits", rule, value)
        if value is None:
            self.rows.pop(rule, None)
        else:
            record = Record("limits", 0, offset, timestamp_ms(WINDOW), rule.encode(), value)
            self.rows[rule] = decode_row(LIMITS, record)
        for snapshot in self._snapshots.values():
            self._evaluate(snapshot, only=(rule,))
        return offset

    def _evaluate(self, snapshot: Snapshot, only: Collection[str] | None = None) -> None:
        key = snapshot.device_id
        former = self._alerts.get(key)
        if former is not None and former.first_seen != snapshot.first_seen:
            former = None
        evaluation = Evaluation(ALERTS, Rules(self.rows), 0, lambda *_: None, only)
        if (record := evaluation.evaluate(former, snapshot)) is not None:
            self._alerts[key] = record
            self._put("too_high", key, record.encode(), snapshot.first_seen)

    def _put(
        self, state: str, key: str, value: bytes | None, window: datetime | None = None, version: int | None = None
    ) -> int:
        store, number = self.stores[state], partition(key.encode(), STATES[state].partitions)
        offset = store.position(number) or 0
        start = 0 if window is None else round(window.timestamp() * 1000)
        now = round(datetime.now(UTC).timestamp() * 1000)
        entry = None if value is None else Entry(start, 0, version or offset, now, number, offset, value)
        self.changed(store.apply([Update(key, number, offset, entry)], {number: offset + 1}))
        return offset


class WrittenRows:
    """Writes the rows of a TableStore to the sensors."""

    def __init__(self, sensors: Sensors) -> None:
        self._sensors = sensors

    def version(self, _: str, key: str) -> int | None:
        row = self._sensors.rows.get(key)
        return None if row is None else row.version

    def write(self, _: str, key: str, value: bytes | None, __: str) -> int:
        return self._sensors.write(key, value)


@contextmanager
def sensors(
    folder: Path, *, routing: MemoryRouting | None = None, **settings: Any
) -> Iterator[tuple[Dependencies, Sensors]]:
    """Give the dependencies of an instance with sensors, rules and alerts, and their stores."""
    with ExitStack() as stack:
        stores: dict[str, Store] = {}
        for name, state in STATES.items():
            stores[name] = Store(folder / name, state, "boot")
            stack.callback(stores[name].close)
        found = dependencies_of(*STATES.values(), stores=stores, routing=routing, **settings)
        yield found, Sensors(stores)
