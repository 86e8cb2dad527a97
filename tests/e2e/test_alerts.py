"""Real readings through the job and the derive worker, which are killed: the alerts are those of a plain loop."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import orjson
import pytest
from confluent_kafka import Producer

from contracts.model.topics import PARTITIONER
from contracts.records.tables import encode_row
from contracts.wire import decode_snapshot
from contracts.wire.alerts import AlertRecord
from examples.weather.application import app
from examples.weather.readings import readings
from examples.weather.replay import send
from services.runtime.table_writer import TableWriter
from tests.e2e.loop import Loop
from tests.examples.weather.oracle import Crossing, Oracle, RuleChange
from tests.examples.weather.test_alerts import crossings
from tests.spark_app.running import CHECKOUT, Job, until

if TYPE_CHECKING:
    from pathlib import Path

    from examples.weather.readings import Reading
    from tests.services.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

APPLICATION = "tests.e2e.weather:app"
DERIVE = "services.derive"
DAY = 3 * 24
CHANGES = (
    RuleChange(0, "gust", "*", 1.0),
    RuleChange(DAY, "gust", "*", 0.5),
    RuleChange(DAY, "front", "EWR", 1.0),
    RuleChange(3 * DAY, "gust"),
    RuleChange(3 * DAY, "storm", "[JL]*", 0.9),
)
"""Before the reading of this number."""


class Alerts:
    """The topics of the weather, the derive worker, and what is expected."""

    def __init__(self, loop: Loop) -> None:
        self.loop, self.oracle = loop, Oracle()
        self.writer = TableWriter({"bootstrap.servers": loop.bootstrap})
        self.producer = Producer({"bootstrap.servers": loop.bootstrap, "partitioner": PARTITIONER})
        self.number_of: dict[tuple[str, int], int] = {}
        self.sent: Counter[str] = Counter()
        self._derive: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = os.environ | self.loop.environment | {"STATELOOP_GROUP": f"{self.loop.prefix}{DERIVE}"}
        with (self.loop.folder / "derive.log").open("ab") as log:
            self._derive = subprocess.Popen([sys.executable, "-m", DERIVE], cwd=CHECKOUT, env=environment, stderr=log)

    def kill(self) -> None:
        if self._derive is not None:
            self._derive.kill()
            self._derive.wait(30)

    def send(self, some: list[Reading]) -> None:
        for one in some:
            send(self.producer, f"{self.loop.prefix}events", one)
            self.sent[one.station] += 1
            self.oracle.read(one.station, one.temperature)
        assert self.producer.flush(30) == 0

    def change(self, number: int, change: RuleChange) -> None:
        (table,) = app.tables
        row = orjson.dumps({"keys": change.keys, "degrees": change.degrees})
        value = None if change.degrees is None else encode_row(table, change.name, row, "ann")
        version = self.writer.write(f"{self.loop.prefix}{table.name}", change.name, value, "ann")
        self.number_of[change.name, version] = number
        self.oracle.change(number, change)

    def crossings(self) -> tuple[list[Crossing], list[tuple[Crossing, str]]]:
        (alerts,) = app.alerts
        records = [AlertRecord.model_validate_json(one.value() or b"") for one in self.loop.records(alerts.name)]
        return crossings(records, self.number_of)

    def agree(self) -> bool:
        """Whether all readings are evaluated, and the alerts are as expected."""
        versions: Counter[str] = Counter()
        for one in self.loop.records("snapshots"):
            snapshot = decode_snapshot(one.value() or b"")
            versions[snapshot.device_id] = max(versions[snapshot.device_id], snapshot.version)
        opened, closed = self.crossings()
        found, expected = (Counter(opened), Counter(closed)), (Counter(self.oracle.opened), Counter(self.oracle.closed))
        return versions == self.sent and self.loop.lag(DERIVE, "snapshots") == 0 and found == expected

    def await_agreement(self, job: Job) -> None:
        try:
            until(lambda: job.ended() or self.agree(), "the alerts of the plain loop")
        except AssertionError as error:
            error.add_note(f"{self.crossings()}\n{self.oracle.opened}\n{self.oracle.closed}")
            error.add_note((self.loop.folder / "derive.log").read_text("utf-8")[-3000:])
            raise
        assert not job.ended(), job.log.read_text(encoding="utf-8")[-3000:]


def test_the_alerts_of_four_days(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATELOOP_PARTITIONS", "2")
    loop, rows = Loop(broker, topics_prefix, tmp_path, APPLICATION), list(readings())
    alerts = Alerts(loop)
    job = Job(loop.bootstrap, loop.folder, APPLICATION, loop.environment).start()
    try:
        alerts.start()
        for day in range(4):
            for number, change in enumerate(CHANGES):
                if change.before == day * DAY:
                    alerts.change(number, change)
            alerts.await_agreement(job)  # a changed rule is evaluated without another reading
            some = rows[day * DAY : (day + 1) * DAY]
            alerts.send(some[: DAY // 2])
            if day == 1:
                alerts.kill()
            if day == 2:
                job.kill()
                job.start()
            alerts.send(some[DAY // 2 :])
            if day == 1:
                alerts.start()
            alerts.await_agreement(job)
    finally:
        job.stop()
        alerts.kill()
    assert len(alerts.oracle.opened) > 20
    assert {why for _, why in alerts.oracle.closed} == {"condition", "rule_changed", "rule_removed"}
