"""Writes what devices, other parties and operators write to the topics of a simulation."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import orjson

from contracts.records.tables import encode_row
from contracts.wire.partition import partition
from contracts.wire.window_key import window_key
from services.runtime.kafka.values import BY_KEY, Output
from tests.simulation.application import LIMITS
from tests.simulation.kafka.placement import Placement
from tests.simulation.oracle import EVERY, OF_THE_CLOCK
from tests.simulation.script import START, Forged, Row, Sent, Tombstone, time_at

if TYPE_CHECKING:
    from contracts import Application
    from tests.simulation.network import WatchedBroker


class Inputs:
    """Writes to the topics of an application, by the partitions that they have then."""

    def __init__(self, application: Application, broker: WatchedBroker) -> None:
        self._application = application
        self._broker = broker
        self._devices = Placement(broker)

    def write(self, step: Sent | Row | Tombstone | Forged) -> None:
        """Write the record of a step."""
        output = self._output(step)
        place = self._devices.partition(output._replace(key=output.key or b""))
        self._broker.append(place, output)

    def _output(self, step: Sent | Row | Tombstone | Forged) -> Output:
        topics = self._application.topics
        if isinstance(step, Sent):
            number = BY_KEY if step.partition is None else step.partition
            return Output(topics.events, step.device.encode(), _event(step), number)
        if isinstance(step, Row):
            return Output(topics.table(LIMITS), step.name.encode(), _row(step))
        if isinstance(step, Tombstone):
            return self._tombstone(step)
        named = {"events": topics.events, "feedback": topics.feedback, "snapshots": topics.snapshots}
        return Output(named[step.topic], step.key, step.value)

    def _tombstone(self, step: Tombstone) -> Output:
        snapshots, start = self._application.topics.snapshots, time_at(step.first_seen)
        if self._application.name in OF_THE_CLOCK:
            start -= (start - START) % EVERY
        number = partition(step.device.encode(), len(self._broker.topics.topic(snapshots).logs))
        return Output(snapshots, window_key(step.device, start), None, number)


def _event(sent: Sent) -> bytes:
    event = {
        "device_id": sent.device,
        "event_id": sent.event,
        "first_seen": time_at(sent.first_seen).isoformat(),
        "ts": time_at(sent.ts).isoformat(),
        "plate": sent.plate,
        "load": sent.load,
    }
    return orjson.dumps({name: found for name, found in event.items() if found is not None})


def _row(row: Row) -> bytes | None:
    value = None if row.value is None else row.value.encode()
    if value is not None:
        with suppress(ValueError):  # written as it is, for the readers to reject
            value = encode_row(LIMITS, row.name, value, None)
    return value
