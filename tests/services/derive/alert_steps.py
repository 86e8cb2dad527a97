"""Steps of the tests of alerts: rules, snapshots, and the last records."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import orjson

from contracts.records.tables import encode_row
from contracts.wire import Snapshot
from contracts.wire.alert_record import AlertRecord
from contracts.wire.window_key import window_key
from tests.services.derive.alerted import APP, LIMITS, Limit, transitions
from tests.services.derive.crashing import AT, Broker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from services.runtime.kafka.values import Output
    from tests.services.derive.alerted import Crossing


def broker_with(*rules: tuple[str, Limit]) -> Broker:
    broker = Broker(APP, lambda: "go")
    for name, limit in rules:
        broker.append("limits", name.encode(), encode_row(LIMITS, name, limit.model_dump_json(), "ann"))
    return broker


def publish(broker: Broker, key: str, version: int, value: object, at: datetime = AT) -> None:
    start = at.replace(minute=0, second=0)
    snapshot = Snapshot(
        device_id=key, first_seen=start, epoch=broker.epoch, version=version, as_of=at, state={"value": value}
    )
    broker.append("snapshots", window_key(key, start), snapshot.encode())


def last_record(broker: Broker) -> AlertRecord:
    return AlertRecord.model_validate(orjson.loads(broker.topics["too_high"][-1].value or b""))


def last_of(broker: Broker, key: str) -> AlertRecord:
    records = [AlertRecord.model_validate(orjson.loads(one.value or b"")) for one in broker.topics["too_high"]]
    return [record for record in records if record.device_id == key][-1]


def held_for(seconds: int) -> Limit:
    return Limit(high=5, low=5, hold=timedelta(seconds=seconds))


def nothing_derived(*_: object) -> Iterator[Output]:
    yield from ()


def crossings(broker: Broker) -> tuple[list[Crossing], list[tuple[Crossing, str]]]:
    """Return the alerts that have opened, and those that have closed with the cause."""
    return transitions([(one.key, one.value) for one in broker.topics["too_high"]])
