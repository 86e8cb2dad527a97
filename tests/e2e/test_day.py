"""One real day through the whole loop: every flight's final snapshot is what the tables say, whatever is killed."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from examples.flights.application import app
from tests.e2e.launched import Launched
from tests.e2e.reader import Reader
from tests.examples.flights.agreement import differences
from tests.examples.flights.oracle import expected
from tests.spark_app.running import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark]

DAY = date(2013, 1, 1)
FLIGHTS = 842
SPEED = 3_000.0
PATIENCE_S = 300.0


@pytest.fixture(scope="module")
def oracle() -> dict[str, dict[str, Any]]:
    """Give what the tables say of each flight of the day."""
    return expected(DAY)


class Comparison:
    """Which flights are as the oracle has them, and which not yet."""

    def __init__(self, launched: Launched, reader: Reader, oracle: dict[str, dict[str, Any]]) -> None:
        self.launched, self.reader, self.oracle = launched, reader, oracle
        self.open = set(oracle)
        self.right: set[str] = set()

    def agrees(self) -> bool:
        """Read on; whether every flight is now as it should be. A flight that was right may not become wrong."""
        assert self.launched.alive(), self.launched.tail()
        self.reader.read()
        latest = {snapshot.device_id: snapshot for snapshot in self.reader.latest.values()}
        self.open = {
            device for device, what in self.oracle.items() if device not in latest or differences(what, latest[device])
        }
        spoilt = self.right & self.open
        assert not spoilt, f"{len(spoilt)} flights were right and became wrong"
        self.right = set(self.oracle) - self.open
        return not self.open

    def await_agreement(self) -> None:
        """Wait until every flight agrees, and for one more whole batch in which all go on doing so.

        Raises AssertionError, saying what differs.
        """
        try:
            until(self.agrees, "all flights as the tables say", PATIENCE_S)
            last = self.launched.job("batch") + 2  # the first to end may have begun before
            until(lambda: self.agrees() and self.launched.job("batch") >= last, "one more batch", PATIENCE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.first_differences()}\n{self.launched.tail()}") from error

    def require_order(self) -> None:
        """Each version was published, each after the one below it; they went back only when the job began again."""
        assert not self.reader.published.incomplete(), "a version of these lives was never published"
        assert not self.reader.published.skips(), "in these lives a version came too early"
        assert self.reader.published.rewinds() <= self.launched.restarts()

    def first_differences(self) -> str:
        """What is wrong with the first flights that are."""
        latest = {snapshot.device_id: snapshot for snapshot in self.reader.latest.values()}
        shown = sorted(self.open)[:5]
        told = [f"{d}: {differences(self.oracle[d], latest[d]) if d in latest else 'no snapshot'}" for d in shown]
        return f"{len(self.open)} flights differ: {'; '.join(told)}"


def test_every_flight_of_a_day(tmp_path: Path, oracle: dict[str, dict[str, Any]]) -> None:
    assert len(oracle) == FLIGHTS
    with Launched(tmp_path, DAY, SPEED) as launched:
        reader = Reader(launched, app.topics.snapshots)
        comparison = Comparison(launched, reader, oracle)
        comparison.await_agreement()
        comparison.require_order()
        assert launched.restarts() == 0
        answers = sum(one["status"] != "skipped" for what in oracle.values() for one in what["enrichments"].values())
        ledger = launched.calls()
        reader.close()
    assert 0 <= ledger["calls"] - answers <= launched.retried(), "only a call that had no answer in time is repeated"
    assert reader.seen == sum(snapshot.version for snapshot in reader.latest.values()), "nothing is published twice"


def test_every_flight_of_a_day_with_kill_9_of_job_worker_and_broker(
    tmp_path: Path, oracle: dict[str, dict[str, Any]]
) -> None:
    with Launched(tmp_path, DAY, SPEED) as launched:
        reader = Reader(launched, app.topics.snapshots)
        comparison = Comparison(launched, reader, oracle)
        killed: dict[str, int] = {}
        for part, after in (("job", 1_000), ("worker-1", 2_500), ("broker", 4_000)):
            until(_reached(comparison, after), f"{after} snapshots before {part} is killed", PATIENCE_S)
            killed[part] = launched.kill(part)
        comparison.await_agreement()
        comparison.require_order()
        assert launched.launcher() == launched.pid, "the launcher that brought all of it back is the first one"
        assert not {part for part, pid in killed.items() if launched.runs(part) == pid}
        assert launched.restarts() >= 1
        reader.close()


def _reached(comparison: Comparison, count: int) -> Callable[[], bool]:
    def reached() -> bool:
        comparison.agrees()
        return comparison.reader.seen >= count

    return reached
