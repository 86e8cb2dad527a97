"""Three applications in one driver, on a real broker: one emits each event, one at intervals, one closed windows."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from contracts import Suite
from contracts.wire import DeadLetter, Snapshot, decode_snapshot
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.options import create_producer
from services.tools.topics.__main__ import make
from services.tools.topics.settings import TopicsSettings
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import everything, until
from tests.suites import three

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from confluent_kafka import Message
    from pyspark.sql import SparkSession

    from contracts import Application
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

DEVICES = 12
EACH = 5
"""The number of events that one device sends at once."""
EARLIER = "earlier"
"""The device of a window that would close before a dead letter that waited as a window does."""


class Loop:
    """The job of the suite, its topics, and what was sent."""

    def __init__(self, spark: SparkSession, kafka: str, folder: Path, prefix: str) -> None:
        self.kafka = kafka
        self.folder = folder
        self.suite = three(prefix)
        settings = TopicsSettings(application="", kafka=kafka, replication=1)
        make(KafkaAdmin({"bootstrap.servers": kafka}, "test"), Suite(*self.suite).catalogue(), settings)
        self._producer = create_producer({"bootstrap.servers": kafka}, "test")
        environment = {"STATELOOP_BATCH": "PT5S", "STATELOOP_GIVE_UP": "PT1S"}
        self.job = HostedJob(spark, kafka, folder, Suite(*self.suite), environment)
        self.trips: Counter[tuple[str, datetime]] = Counter()
        self.cents: Counter[tuple[str, datetime]] = Counter()
        self._number = 0

    def start(self) -> None:
        """Start the job, and wait until each application has committed a batch of a record."""
        self.job.start()
        self.send("start", datetime.now(UTC))
        names = {application.name for application in self.suite}
        until(lambda: names <= {line["application"] for line in self.job.lines("batch")}, "each has a batch")

    def send(self, device: str, first_seen: datetime, events: int = EACH) -> None:
        """Send events of one device's window."""
        window = device, first_seen
        for _ in range(events):
            self._number += 1
            trip = {"device_id": device, "event_id": str(self._number), "first_seen": first_seen, "ts": first_seen}
            value = orjson.dumps(trip | {"cents": self._number})
            self._producer.produce(self.suite.totals.topics.events, key=device, value=value)
            self.trips[window] += 1
            self.cents[window] += self._number
        assert self._producer.flush(60) == 0

    def send_rubbish(self) -> None:
        """Send a record that no application can decode."""
        self._producer.produce(self.suite.totals.topics.events, key=b"rubbish", value=b"rubbish")
        assert self._producer.flush(60) == 0

    def published(self, application: Any) -> dict[tuple[str, datetime], list[Snapshot]]:
        """Return the snapshots of each window, as they came."""
        by_window = defaultdict(list)
        for message in everything(self.kafka, application.topics.snapshots):
            snapshot = decode_snapshot(message.value() or b"")
            by_window[snapshot.window].append(snapshot)
        return by_window

    def is_whole(self, application: Any) -> bool:
        """Return whether the last snapshot of each window has all its events."""
        by_window = self.published(application)
        return by_window.keys() == self.trips.keys() and all(
            snapshots[-1].state == snapshots[-1].state | {"trips": self.trips[window], "cents": self.cents[window]}
            for window, snapshots in by_window.items()
        )


@pytest.fixture
def loop(spark: SparkSession, broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> Iterator[Loop]:
    """Give the loop with a job that is not started."""
    running = Loop(spark, broker.bootstrap, tmp_path, topics_prefix)
    yield running
    running.job.stop()


def test_applications_in_one_driver_publish_right_states_and_the_end_of_one_stops_no_other(loop: Loop) -> None:
    """The job is stopped while events are merged, and while windows close."""
    loop.start()
    _a_dead_letter_waits_for_no_window(loop)
    _each_mode_emits_as_often_as_declared(loop)
    _states_are_right_after_a_stop_while_events_are_merged(loop)
    _an_application_that_gives_up_is_reported(loop)
    totals, _, bills = loop.suite
    loop.send("late", datetime.now(UTC))
    until(lambda: loop.is_whole(totals), "another application goes on")
    until(lambda: loop.published(bills), "a window is closed")
    loop.job.stop()  # while windows close, with no events that move the watermark
    loop.job.start()
    until(lambda: loop.is_whole(bills), "all windows are closed by the clock")
    for window, snapshots in loop.published(bills).items():
        assert len({snapshot.model_dump_json() for snapshot in snapshots}) == 1, f"{window} has one content"
    _closed_late_enough(everything(loop.kafka, bills.topics.snapshots), bills)
    _the_dead_letter_came_before_the_windows_of_its_time(loop)


def _a_dead_letter_waits_for_no_window(loop: Loop) -> None:
    bills = loop.suite.bills
    loop.send_rubbish()
    loop.send(EARLIER, datetime.now(UTC) - bills.kept_for / 2)
    (message,) = until(lambda: everything(loop.kafka, bills.topics.dead_letters), "the dead letter")
    letter = DeadLetter.model_validate_json(message.value() or b"")
    assert (letter.reason, letter.head, message.key()) == ("malformed", "rubbish", b"rubbish")


def _the_dead_letter_came_before_the_windows_of_its_time(loop: Loop) -> None:
    """Compare records, not clocks: a batch of a busy machine may take longer than a window is kept."""
    bills = loop.suite.bills
    letter, *_ = everything(loop.kafka, bills.topics.dead_letters)
    snapshots = everything(loop.kafka, bills.topics.snapshots)
    closed = [message for message in snapshots if decode_snapshot(message.value() or b"").device_id == EARLIER]
    assert letter.timestamp()[1] < min(message.timestamp()[1] for message in closed)


def _each_mode_emits_as_often_as_declared(loop: Loop) -> None:
    totals, newest, bills = loop.suite
    now = datetime.now(UTC)
    for number in range(DEVICES):
        loop.send(f"d{number}", now)
    until(lambda: loop.is_whole(totals) and loop.is_whole(newest), "all is published")
    assert sum(map(len, loop.published(totals).values())) == sum(loop.trips.values()), "one for each event"
    published = loop.published(newest)
    batches = Counter(line["application"] for line in loop.job.lines("batch"))
    assert max(map(len, published.values())) <= batches[newest.name], "at most one for each batch"
    read = "records_total", bills.name, totals.topics.events
    sent = loop.trips.total() + 1  # the rubbish
    until(lambda: loop.job.metrics().get(read, 0) >= sent, "all is counted")
    assert loop.job.metrics()[read] <= len(everything(loop.kafka, totals.topics.events)), "each is counted once"


def _states_are_right_after_a_stop_while_events_are_merged(loop: Loop) -> None:
    totals, newest, _ = loop.suite
    now = datetime.now(UTC)
    for number in range(DEVICES):
        loop.send(f"d{number}", now)
    until(lambda: loop.is_whole(totals), "the first events are merged")
    for number in range(DEVICES):
        loop.send(f"d{number}", now)
        if number == DEVICES // 2:
            loop.job.stop()
    loop.job.start()
    until(lambda: loop.is_whole(totals) and loop.is_whole(newest), "all is published again")


def _an_application_that_gives_up_is_reported(loop: Loop) -> None:
    _replace_by_a_file(loop.folder / "checkpoint" / "newest", loop.folder / "removed")
    loop.send("broken", datetime.now(UTC))  # a query without records writes nothing, and does not fail
    gave_up, *_ = until(lambda: loop.job.lines("gave_up"), "one gives up")
    assert gave_up["application"] == "newest"
    until(lambda: "newest gave up: " in loop.job.ask("/readyz"), "readiness names it")
    assert loop.job.ask("/healthz") == '{"ok": true}'
    assert not loop.job.ended()


def _replace_by_a_file(checkpoint: Path, removed: Path) -> None:
    """Put a file in the place of a checkpoint: Spark goes on in an empty folder, and creates one that is missing.

    The folder is renamed, because a job that writes makes the removal of one file after the other fail.
    """
    for number in count():
        checkpoint.rename(removed.with_name(f"{removed.name}-{number}"))
        with suppress(FileExistsError):  # the job has created the folder again
            checkpoint.touch(exist_ok=False)
            return


def _closed_late_enough(messages: list[Message], bills: Application) -> None:
    for message in messages:
        end = decode_snapshot(message.value() or b"").first_seen + bills.kept_for + bills.skew
        assert datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC) >= end, "a window never closes early"
