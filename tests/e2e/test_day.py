"""One real day through the whole loop: every flight's final snapshot is as in the tables, whatever is killed."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from contracts.wire import Snapshot
from examples.flights.application import app
from tests.e2e.comparison import Comparison
from tests.e2e.launched import Launched
from tests.e2e.polling import Polling
from tests.e2e.reader import Reader
from tests.examples.flights.oracle import expected
from tests.spark_app.running import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark]

DAY = date(2013, 1, 1)
FLIGHTS = 842
SPEED = 3_000.0
PATIENCE_S = 450.0
AIRCRAFT = "aircraft"
KILLS = (("job", 1_000), ("query", 1_800), ("worker-1", 2_500), ("derive", 3_200), ("broker", 4_000))
"""Each part, and after how many snapshots it is killed; there are some 8,400, unless the job has to catch up."""


@pytest.fixture(scope="module")
def oracle() -> dict[str, dict[str, Any]]:
    """Give each flight of the day as the tables have it."""
    return expected(DAY)


class Watched:
    """A launched loop, held to the oracle while it runs."""

    def __init__(self, launched: Launched, comparison: Comparison) -> None:
        self.launched, self.comparison = launched, comparison

    def agrees(self) -> bool:
        """Return whether every flight is now as it should be; the loop must be alive."""
        assert self.launched.alive(), self.launched.tail()
        return self.comparison.agrees()

    def await_snapshots(self, count: int) -> None:
        """Wait until `count` snapshots are published, or all flights agree: a job that catches up publishes fewer."""
        self._until(lambda: self.agrees() or self.comparison.reader.seen >= count, f"{count} snapshots")

    def await_agreement(self) -> None:
        """Wait until every flight agrees, and goes on doing so until the end of the batch."""
        self._until(self.agrees, "all flights as in the tables")
        batches = self.launched.job("batch")
        self._until(lambda: self.agrees() and self.launched.job("batch") > batches, "the end of the batch")

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        try:
            until(condition, what, PATIENCE_S)
        except AssertionError as error:
            seen, different = self.comparison.reader.seen, self.comparison.first_differences()
            raise AssertionError(f"{error}: {seen} snapshots, {different}\n{self.launched.tail()}") from error

    def require_order(self) -> None:
        """Each version was published, each after the one below it."""
        self.comparison.require_order()
        self.require_few_rewinds()

    def require_few_rewinds(self) -> None:
        """Versions went back only when the job began again. A job that catches up leaves versions out."""
        assert self.comparison.reader.published.rewinds() <= self.launched.restarts()


@pytest.mark.full  # the next test has the same promise, and tests/e2e/test_rebuild.py that no call is repeated
def test_every_flight_of_a_day(tmp_path: Path, oracle: dict[str, dict[str, Any]]) -> None:
    assert len(oracle) == FLIGHTS
    with Launched(tmp_path, DAY, SPEED, catch_up=False) as launched:
        reader = Reader(launched.kafka, app.topics.snapshots)
        watched = Watched(launched, Comparison(reader, oracle))
        watched.await_agreement()
        watched.require_order()
        assert launched.restarts() == 0
        with Polling(launched.http, app.name, AIRCRAFT) as polling:
            require_answers(polling, reader, oracle)
        answers = sum(slot["status"] != "skipped" for what in oracle.values() for slot in what["enrichments"].values())
        ledger = launched.calls()
        reader.close()
    calls = ledger["calls"] + launched.shared()
    assert 0 <= calls - answers <= launched.retried(), "only a call that had no answer in time is repeated"
    assert reader.seen == sum(snapshot.version for snapshot in reader.latest.values()), "nothing is published twice"


def test_every_flight_of_a_day_with_kill_9_of_every_part(tmp_path: Path, oracle: dict[str, dict[str, Any]]) -> None:
    with Launched(tmp_path, DAY, SPEED) as launched, Polling(launched.http, app.name, AIRCRAFT) as polling:
        reader = Reader(launched.kafka, app.topics.snapshots)
        watched = Watched(launched, Comparison(reader, oracle))
        killed: dict[str, int] = {}
        for part, after in KILLS:
            watched.await_snapshots(after)
            killed[part] = launched.kill(part)
        watched.await_agreement()
        watched.require_few_rewinds()
        assert launched.launcher() == launched.pid, "the launcher that brought all of it back is the first one"
        assert not {part for part, pid in killed.items() if launched.runs(part) == pid}
        assert launched.restarts() >= 1
        require_answers(polling, reader, oracle)
        reader.close()
    assert not polling.back, "no reader sees a key go back, whatever the job publishes again"


def require_answers(polling: Polling, reader: Reader, oracle: dict[str, dict[str, Any]]) -> None:
    """The query service has every flight as it was published last, and of each aircraft the last flight."""
    last = {snapshot.device_id: snapshot for snapshot in reader.latest.values()}
    versions = {device: snapshot.version for device, snapshot in last.items()}
    until(lambda: polling.is_all(app.name, versions), "the query service has every flight", PATIENCE_S)
    for device, item in polling.all(app.name).items():
        assert Snapshot.model_validate(item["value"]) == last[device]
    flights: dict[str, Snapshot] = {}
    for snapshot in sorted(last.values(), key=lambda snapshot: snapshot.first_seen):
        if tailnum := oracle[snapshot.device_id]["state"].get("tailnum"):
            flights[tailnum] = snapshot
    versions = {tailnum: snapshot.version for tailnum, snapshot in flights.items()}
    until(lambda: polling.is_all(AIRCRAFT, versions), "the query service has every aircraft", PATIENCE_S)
    last_flights = {tailnum: item["value"]["value"]["flight"] for tailnum, item in polling.all(AIRCRAFT).items()}
    assert last_flights == {tailnum: snapshot.device_id for tailnum, snapshot in flights.items()}
