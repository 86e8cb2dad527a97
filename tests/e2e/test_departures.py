"""Real departures, counted by two queries of one job: every window is as in the tables."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

import orjson
import pytest

from examples.flights import tables
from examples.flights.stream import stream
from services.client import Client, Found
from services.runtime.kafka.options import create_producer
from tests.e2e.loop import Loop
from tests.e2e.reader import Reader
from tests.examples.departures.agreement import differences
from tests.examples.departures.oracle import by_day, by_hour
from tests.services.tools.broker.embedded import free_port_pair
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import everything, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from examples.flights.event import FlightEvent
    from tests.examples.departures.oracle import Expected, WindowKey
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark]

SUITE = "tests.e2e.departures:suite"
FIRST = date(2013, 1, 1)
STEP = timedelta(hours=6)
"""Of the events that are sent at once: partitions that are this far apart lose nothing within the grace."""
MIDDLE = timedelta(minutes=30)
"""Each step ends in the middle of an hour."""
RESTARTS = {2: (1, 2, 5), 31: (20, 21, 60, 95)}
"""The steps in which the job is restarted, by the number of days."""
PATIENCE_S = 300.0


class Month:
    """The topics of a month, and what is expected and found in them."""

    def __init__(self, loop: Loop, days: int) -> None:
        self.loop, self.days = loop, days
        self.expected: dict[str, dict[WindowKey, Expected]] = {
            "departures": by_hour(1, days),
            "carriers": by_day(1, days),
        }
        self._wrong = {name: dict.fromkeys(windows, "missing") for name, windows in self.expected.items()}
        self.readers = {name: Reader(loop.bootstrap, f"{loop.prefix}{name}_snapshots") for name in self.expected}
        self._producer = create_producer({"bootstrap.servers": loop.bootstrap}, "test")

    def send(self, events: list[FlightEvent]) -> None:
        """Send events as the replay does, and wait until the broker has them."""
        for event in events:
            value = orjson.dumps(event.model_dump(exclude_none=True))
            stamp = round(event.ts.timestamp() * 1000)
            self._producer.produce(f"{self.loop.prefix}events", value, event.device_id, timestamp=stamp)
            self._producer.poll(0)
        assert self._producer.flush(PATIENCE_S) == 0

    def reached(self, time: datetime) -> bool:
        """Return whether both queries have published a window with a record of this time, or a later one."""
        for reader in self.readers.values():
            reader.read()
        latest = [reader.latest.values() for reader in self.readers.values()]
        newest = [max((snapshot.as_of for snapshot in snapshots), default=None) for snapshots in latest]
        return all(as_of is not None and as_of >= time for as_of in newest)

    def wrong(self) -> list[str]:
        """Return the present differences from the tables."""
        for name, reader in self.readers.items():
            expected, wrong = self.expected[name], self._wrong[name]
            for window in reader.changes():
                wrong.pop(window, None)
                if window not in expected:
                    wrong[window] = "not in the tables"
                elif differing := differences(expected[window], reader.latest[window]):
                    wrong[window] = str(differing)
        return [f"{name} {window}: {why}" for name, wrong in self._wrong.items() for window, why in wrong.items()]

    def await_agreement(self, job: HostedJob) -> None:
        """Wait until every window is right. Raises AssertionError, with what differs."""
        try:
            until(lambda: job.ended() or not self.wrong(), "every window as in the tables", PATIENCE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.wrong()[:5]}") from error
        assert not job.ended(), job.log.read_text(encoding="utf-8")[-3000:]

    def require_final(self) -> None:
        """Nothing that was written later is wrong, and no record became a dead letter."""
        for reader in self.readers.values():
            reader.read_to_end()
        assert not self.wrong()
        for name in self.expected:
            assert not everything(self.loop.bootstrap, f"{self.loop.prefix}{name}_dead_letters")

    def close(self) -> None:
        """Leave."""
        for reader in self.readers.values():
            reader.close()


@pytest.fixture(params=[pytest.param(2, id="days"), pytest.param(31, id="month", marks=pytest.mark.full)])
def month(
    request: pytest.FixtureRequest, broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> Iterator[Month]:
    """Give the topics of the first days of a month, and what the tables have of them."""
    made = Month(Loop(broker, topics_prefix, tmp_path, SUITE), request.param)
    yield made
    made.close()


def steps(days: int) -> Iterator[list[FlightEvent]]:
    """The events of the days, in steps."""
    begin = datetime(2012, 12, 31, tzinfo=UTC) + MIDDLE
    for _, events in groupby(stream(tables.days(FIRST, days)), lambda event: (event.ts - begin) // STEP):
        yield list(events)


async def test_every_window_of_a_month_with_restarts_of_the_job(spark: SparkSession, month: Month) -> None:
    """Events are sent twice around each restart, as by a replay that is restarted as well.

    The last start has a backlog to catch up with.
    """
    loop = month.loop
    job = HostedJob(spark, loop.bootstrap, loop.folder, SUITE, loop.environment | {"STATELOOP_CATCH_UP": "true"})
    job.start()
    try:
        for number, events in enumerate(steps(month.days)):
            month.send(events)
            if number in RESTARTS[month.days]:
                until(lambda: job.ended() or month.reached(events[0].ts), f"step {number} in both", PATIENCE_S)  # noqa: B023
                job.stop()
                month.send(events)
                job.start()
        job.stop()
        month.await_agreement(job.start())
    finally:
        job.stop()
    month.require_final()
    port = str(free_port_pair())
    with loop.service("services.query", http_port=port, query_data=str(loop.folder / "data")):
        await require_answers(f"http://127.0.0.1:{port}", month)


async def require_answers(url: str, month: Month) -> None:
    """The query service has each window of a key, the window at a time, and the keys of a window in order."""
    async with Client(url, deadline=PATIENCE_S) as client:
        expected = {start: totals for (key, start), totals in month.expected["departures"].items() if key == "JFK"}
        windows = {window.window_start: window async for window in client.windows("departures", "JFK")}
        assert windows.keys() == expected.keys()
        assert {start: window.value["state"]["flights"] for start, window in windows.items()} == {
            start: totals.departed for start, totals in expected.items()
        }
        morning = datetime.fromisoformat("2013-01-01T08:30:00-05:00")
        at = await client.get("departures", "JFK", at=morning)
        assert isinstance(at, Found)
        assert (at.window_start, at.value["state"]["flights"]) == (datetime(2013, 1, 1, 13, tzinfo=UTC), 25)
        day = datetime(2013, 1, 1, 5, tzinfo=UTC)
        busiest = [item async for item in client.window_items("carriers", morning, order_by="-state.flights", limit=3)]
        ranked = sorted(totals.departed for (_, start), totals in month.expected["carriers"].items() if start == day)
        assert [item.value["state"]["flights"] for item in busiest] == ranked[:-4:-1]
