"""The alerts of a year with 200 changes of rules, through workers that are killed."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from contracts.records.tables import encode_row
from contracts.testing import Loop
from contracts.wire.alert_record import AlertRecord
from contracts.wire.window_key import window_key
from examples.weather.application import app
from examples.weather.readings import readings
from tests.examples.weather.oracle import Crossings, Oracle, RuleChange, merged, rule_changes
from tests.services.derive.crashing import AT, Broker

if TYPE_CHECKING:
    from examples.weather.readings import Reading

KILLED, REFUSED = 0.001, 0.001
"""The probabilities of a killed and of a refused write or commit."""


class Year:
    """The readings and rule changes, for the workers and for the oracle."""

    def __init__(self, seed: int) -> None:
        drawn = random.Random(seed)
        self.broker = Broker(app, lambda: _fate(drawn.random()), batch=500, restarts=False)
        self.oracle = Oracle()
        self.number_of: dict[tuple[str, int], int] = {}
        self.loop = Loop(app, {}, lambda: AT)

    def change(self, number: int, change: RuleChange) -> None:
        (table,) = app.tables
        row: Any = {"keys": change.keys, "degrees": change.degrees}
        value = None if change.degrees is None else encode_row(table, change.name, orjson.dumps(row), None)
        version = self.broker.append(app.topics.table(table), change.name.encode(), value)
        self.number_of[change.name, version] = number
        self.oracle.change(number, change)

    def read(self, reading: Reading) -> None:
        snapshot = self.loop.send(reading)
        self.broker.append(app.topics.snapshots, window_key(*snapshot.window), snapshot.encode())
        self.oracle.read(reading.station, reading.temperature)

    def crossings(self) -> Crossings:
        (alerts,) = app.alerts
        found = Crossings(self.number_of)
        for one in self.broker.topics[app.topics.derived(alerts.name)]:
            found.add(AlertRecord.model_validate_json(one.value or b""))
        return found


def _fate(drawn: float) -> str:
    return "kill" if drawn < KILLED else "refuse" if drawn < KILLED + REFUSED else "go"


@pytest.mark.slow
def test_a_year_has_the_alerts_of_the_table() -> None:
    year, rows = Year(2013), list(readings())
    for number, due in merged(len(rows), rule_changes(200, len(rows), 2013)):
        if due:
            year.broker.run()
        for at, change in due:
            year.change(at, change)
            year.broker.run()
        year.read(rows[number])
    year.broker.run()
    year.broker.end()
    found = year.crossings()
    assert found.opened.total() > 1000
    assert found.opened == Counter(year.oracle.opened)
    assert found.closed == Counter(year.oracle.closed)
