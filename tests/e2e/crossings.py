"""The alerts of gauges as the receiver of a webhook sees them, and the alerts of a plain loop over the readings."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from contracts.alerts.deliveries import events
from contracts.records.tables import encode_row
from contracts.wire.alert_record import AlertRecord
from services.runtime.kafka.clients import KafkaClients
from services.runtime.kafka.options import record_of
from services.runtime.table_writer import TableWriter

if TYPE_CHECKING:
    from datetime import timedelta

    from contracts import Table
    from contracts.wire.alert_record import Alert
    from tests.e2e.loop import Loop

ALERTS = "too_high"


class Crossing(NamedTuple):
    """An alert that has opened: the window, and the version of the snapshot with which it began."""

    device: str
    first_seen: datetime
    version: int
    opened_at: datetime
    closed_at: datetime | None = None
    closed_by: str | None = None


class Value(NamedTuple):
    """A reading as the broker has it."""

    device: str
    first_seen: datetime
    at: datetime
    value: int


def put(loop: Loop, table: Table, name: str, **row: Any) -> None:
    """Write a row of a table."""
    writer = TableWriter(KafkaClients({"bootstrap.servers": loop.bootstrap}))
    writer.write(f"{loop.prefix}{table.name}", name, encode_row(table, name, orjson.dumps(row), "ann"), "ann")


def send_reading(loop: Loop, device: str, first_seen: datetime, value: int) -> None:
    """Send a measurement of this moment."""
    own = {"device_id": device, "first_seen": first_seen, "ts": datetime.now(UTC), "value": value}
    loop.send("events", device, orjson.dumps(own))


def sent(loop: Loop) -> list[Value]:
    """All readings; the readings of a gauge in their order."""
    readings = []
    for message in loop.records("events"):
        own = orjson.loads(message.value() or b"")
        first_seen = datetime.fromisoformat(own["first_seen"])
        readings.append(Value(own["device_id"], first_seen, record_of(message).timestamp, own["value"]))
    return readings


def plain(readings: list[Value], high: int, hold: timedelta) -> tuple[set[Crossing], int]:
    """Return the alerts of readings, and the number of crossings that ended within the hold."""
    versions, begun = Counter[str](), dict[str, tuple[int, datetime]]()
    closed, short = set[Crossing](), 0
    starts = {reading.device: reading.first_seen for reading in readings}
    for device, first_seen, at, value in readings:
        versions[device] += 1
        if value >= high:
            begun.setdefault(device, (versions[device], at))
        elif device in begun:
            version, since = begun.pop(device)
            if since + hold <= at:
                closed.add(Crossing(device, first_seen, version, since + hold, at, "condition"))
            else:
                short += 1
    lasting = {Crossing(device, starts[device], version, since + hold) for device, (version, since) in begun.items()}
    return closed | lasting, short


def records(loop: Loop) -> list[AlertRecord]:
    """All records of the alerts."""
    return [AlertRecord.model_validate_json(message.value() or b"") for message in loop.records(ALERTS)]


def crossings(loop: Loop) -> set[Crossing]:
    """The alerts that have opened. Each has opened once, and closed once at most."""
    alert_events = [event for record in records(loop) for event in events(ALERTS, record)]
    keys = Counter(event.idempotency_key for event in alert_events)
    assert max(keys.values(), default=1) == 1, [event for event in alert_events if keys[event.idempotency_key] > 1]
    last = {event.id: event for event in alert_events}
    assert last.keys() == {event.id for event in alert_events if event.event == "opened"}
    return {
        Crossing(
            event.device_id,
            event.first_seen,
            _version(event.id),
            _time(event.opened_at),
            event.closed_at,
            event.closed_by,
        )
        for event in last.values()
    }


def opened(alerts: set[Crossing]) -> set[Crossing]:
    """These alerts as they have opened."""
    return {alert._replace(closed_at=None, closed_by=None) for alert in alerts}


def active(loop: Loop) -> dict[str, list[Alert]]:
    """The pending and open alerts of each gauge."""
    return {record.device_id: list(record.active) for record in records(loop)}


def _version(alert: str) -> int:
    return int(alert.rpartition(".")[2])


def _time(at: datetime | None) -> datetime:
    assert at is not None
    return at
