"""A broker in memory, with a worker that may be killed at each of its writes and commits."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from contracts.records.record import Record, timestamp_ms
from services.derive.alert_worker import AlertWorker
from services.derive.alerting import Alerting
from services.derive.tables import Tables
from services.derive.worker import DeriveWorker, names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contracts import Application
    from contracts.metrics import Metric
    from services.derive.derive import OutputRecord
    from services.runtime.job_progress import Published
    from services.runtime.topic_reader import TopicReader

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)


FOLLOWED = 2
"""After so many reads without a record the tables are followed to their end."""


class KilledError(Exception):
    """The worker is killed."""


class Broker:
    """Topics of one partition, and a committed offset. `fate` decides at each step: go on, refuse, kill, or stop.

    A worker reads `batch` records at once. With `restarts`, each run has a new one.
    """

    def __init__(
        self, application: Application, fate: Callable[[], str], *, batch: int = 3, restarts: bool = True
    ) -> None:
        self.application, self.fate = application, fate
        self.batch, self.restarts = batch, restarts
        self.member: Member | None = None
        self.topics: defaultdict[str, list[Record]] = defaultdict(list)
        self.committed = 0
        self.is_stopping = False
        """Whether the worker has received SIGTERM."""
        self.published: Published | None = None

    def append(self, topic: str, key: bytes | None, value: bytes | None) -> int:
        records = self.topics[topic]
        records.append(Record(topic, 0, len(records), timestamp_ms(AT), key, value))
        return len(records) - 1

    def run(self, *, is_live: bool = False) -> None:
        """Run a worker until all is read and evaluated; after each kill or stop another one. `is_live`: no replay."""
        while True:
            try:
                self.member = self.member or Member(self, is_live=is_live)
                self.member.run()
            except KilledError:
                self.member = None
            else:
                self.member = None if self.restarts or self.is_stopping else self.member
                if not self.is_stopping:
                    return
            self.is_stopping = False

    def step(self) -> str:
        """Return the fate of the next step. Raises KilledError. A step is finished also when the worker is to stop."""
        fate = self.fate()
        if fate == "kill":
            raise KilledError
        self.is_stopping |= fate == "stop"
        return fate

    def commit(self, offset: int) -> bool:
        if self.step() == "refuse":
            return False
        self.committed = max(self.committed, offset)
        return True

    def write(self, outputs: Sequence[OutputRecord]) -> bool:
        """Write all of these; or some, before the worker is killed, or has to take them for unsent."""
        for one in outputs:
            if self.step() == "refuse":
                return False
            self.append(one.topic, one.key, one.value)
        return True


class Member:
    """The worker's Kafka."""

    def __init__(self, broker: Broker, *, is_live: bool) -> None:
        self.broker = broker
        self.position = self.end = broker.committed
        self.idle_reads = 0
        application = self.broker.application
        tables, reader = (cast("TopicReader", Reader(self.broker)) for _ in range(2))
        partitions = dict.fromkeys(names(application), 1)
        alerts = AlertWorker(
            application,
            Alerting(application, partitions, is_replay=not is_live),
            Tables(application, tables),
            reader,
            _count,
            lambda: broker.is_stopping,
            lambda _: {} if broker.published is None else {0: broker.published},
        )
        alerts.start()
        alerts.assigned({0: self.broker.committed})
        self.alerts = alerts
        self.worker = DeriveWorker(application, self, partitions, _count, self._is_over, alerts)

    def run(self) -> None:
        self.idle_reads = 0
        self.worker.run()
        while not self.broker.is_stopping and not self.broker.commit(self.end):
            """A rule that changes later is evaluated against what was evaluated before: so that is committed."""

    def _is_over(self) -> bool:
        return self.broker.is_stopping or self.idle_reads == FOLLOWED

    def read(self, wait_s: float = 0) -> Sequence[Record]:  # noqa: ARG002  # it never waits
        found = self.broker.topics[self.broker.application.topics.snapshots][
            self.position : self.position + self.broker.batch
        ]
        self.idle_reads = 0 if found or self.alerts.is_busy else self.idle_reads + 1
        return found

    def settle(self, records: Sequence[Record], outputs: Sequence[OutputRecord]) -> bool:
        if not self.broker.write(outputs):
            return False
        if records:
            self.position = self.end = records[-1].offset + 1
            self.broker.commit(self.end)
        return True

    def write(self, outputs: Sequence[OutputRecord]) -> bool:
        return self.broker.commit(self.end) and self.broker.write(outputs)


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
        end_offsets: Mapping[tuple[str, int], int] | None = None,
        since: datetime | None = None,
    ) -> Iterator[list[Record]]:
        for topic, number in partitions:
            self.broker.step()
            if is_stopping():
                return
            records = [one for one in self.broker.topics[topic] if since is None or one.timestamp >= since]
            self.positions[topic] = len(records)
            yield records[: (end_offsets or {}).get((topic, number), len(records))]

    def stop(self) -> None:
        self.positions.clear()

    def poll(self) -> list[Record]:
        found: list[Record] = []
        for topic, position in self.positions.items():
            found += self.broker.topics[topic][position:]
            self.positions[topic] = len(self.broker.topics[topic])
        return found


def _count(_: Metric, by: int) -> None:
    assert by >= 0
