"""A broker in memory, with a worker that may be killed at each of its writes and commits."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from contracts.records.record import Record
from services.derive.alert_worker import AlertWorker
from services.derive.alerting import Alerting
from services.derive.tables import Tables
from services.derive.worker import DeriveWorker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contracts import Application
    from contracts.metrics import Metric
    from services.derive.derive import OutputRecord
    from services.runtime.topic_reader import TopicReader

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)


class KilledError(Exception):
    """The worker is killed."""


class Broker:
    """Topics of one partition, and a committed offset. `fate` decides at each step: go on, refuse, or kill."""

    def __init__(self, application: Application, fate: Callable[[], str]) -> None:
        self.application, self.fate = application, fate
        self.topics: defaultdict[str, list[Record]] = defaultdict(list)
        self.committed = 0

    def append(self, topic: str, key: bytes | None, value: bytes | None) -> int:
        records = self.topics[topic]
        records.append(Record(topic, 0, len(records), AT, key, value))
        return len(records) - 1

    def run(self, now: Callable[[], datetime] | None = None) -> None:
        """Run a worker until all is read and evaluated; after each kill another one."""
        while True:
            try:
                return Member(self).run(now)
            except KilledError:
                continue

    def commit(self, offset: int) -> bool:
        fate = self.fate()
        if fate == "refuse":
            return False
        if fate == "kill":
            raise KilledError
        self.committed = max(self.committed, offset)
        return True

    def write(self, said: Sequence[OutputRecord]) -> bool:
        """Write all of these; or some, before the worker is killed, or has to take them for unsent."""
        for one in said:
            fate = self.fate()
            if fate == "kill":
                raise KilledError
            if fate == "refuse":
                return False
            self.append(one.topic, one.key, one.value)
        return True


class Member:
    """The worker's Kafka."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.position = self.end = broker.committed
        self.is_idle = False

    def run(self, now: Callable[[], datetime] | None) -> None:
        application = self.broker.application
        tables, reader = (cast("TopicReader", Reader(self.broker)) for _ in range(2))
        alerts = AlertWorker(
            application, Alerting(application, now), Tables(application, tables), reader, _count, lambda: False
        )
        alerts.start()
        alerts.assigned({0: self.broker.committed})
        self.alerts = alerts
        DeriveWorker(application, self, {}, _count, lambda: self.is_idle, alerts).run()
        alerts.revoked([0])
        while not self.broker.commit(self.end):
            """A rule that changes later is evaluated against what was evaluated before: so that is committed."""

    def read(self, wait_s: float = 0) -> Sequence[Record]:  # noqa: ARG002  # it never waits
        found = self.broker.topics[self.broker.application.topics.snapshots][self.position : self.position + 3]
        self.is_idle = not (found or self.alerts.is_busy)
        return found

    def settle(self, records: Sequence[Record], said: Sequence[OutputRecord]) -> bool:
        if not self.broker.write(said):
            return False
        if records:
            self.position = self.end = records[-1].offset + 1
            self.broker.commit(self.end)
        return True

    def write(self, said: Sequence[OutputRecord]) -> bool:
        return self.broker.commit(self.end) and self.broker.write(said)


class Reader:
    """Reads topics whole, and follows them."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.positions: dict[str, int] = {}

    def partitions(self, topics: Sequence[str]) -> list[tuple[str, int]]:
        return [(topic, 0) for topic in topics]

    def read_to_end(
        self,
        partitions: list[tuple[str, int]],
        is_stopping: Callable[[], bool],
        ends: Mapping[tuple[str, int], int] | None = None,
    ) -> Iterator[list[Record]]:
        assert not is_stopping()
        for topic, number in partitions:
            records = self.broker.topics[topic]
            self.positions[topic] = len(records)
            yield records[: (ends or {}).get((topic, number), len(records))]

    def poll(self) -> list[Record]:
        found: list[Record] = []
        for topic, position in self.positions.items():
            found += self.broker.topics[topic][position:]
            self.positions[topic] = len(self.broker.topics[topic])
        return found


def _count(_: Metric, by: int) -> None:
    assert by >= 0
