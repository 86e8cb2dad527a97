"""Topics of an application that get more partitions, with snapshots and derived records, on a real broker."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from pydantic import BaseModel

from contracts import Application, Derived, Event, Latest, State, Topics
from contracts.settings import KafkaSettings
from contracts.wire import DerivedRecord, Snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import derived_key, window_key
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.clients import KafkaClients
from services.runtime.kafka.options import create_producer
from services.tools.broker.readiness import wait_until
from services.tools.topics.__main__ import make
from services.tools.topics.growth import PartitionGrowth
from services.tools.topics.settings import TopicsSettings
from tests.deadline import DEADLINE_S
from tests.spark_app.running import everything

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Message

    from tests.services.tools.broker.embedded import EmbeddedBroker

BEFORE, AFTER = 2, 5
GROUP = "workers"
START = datetime(2026, 5, 1, 8, tzinfo=UTC)
DEVICES = [f"device-{number}" for number in range(30)]


class Ping(Event):
    place: str | None = None


class Machine(State):
    place: Annotated[str | None, Latest()]


class Place(BaseModel):
    device: str


class World:
    """The topics of an application, with snapshots of some devices and a derived record of each."""

    def __init__(self, broker: EmbeddedBroker, prefix: str) -> None:
        self.application = Application(
            name="machines",
            event=Ping,
            state=Machine,
            topics=Topics(prefix=prefix, partitions=BEFORE),
            derived=(Derived("places", Place, lambda _: ()),),
        )
        self.settings = KafkaSettings(kafka=broker.bootstrap)
        self.group = f"{prefix}{GROUP}"
        self.reports: list[str] = []
        self.topics = self.application.topics
        self.place_topic = self.topics.derived("places")
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        make(
            KafkaAdmin({"bootstrap.servers": broker.bootstrap}, "test"),
            self.application.catalogue(),
            TopicsSettings(application="", kafka=broker.bootstrap),
        )
        wait_until(lambda: set(self.counts().values()) == {BEFORE}, "the topics", DEADLINE_S)
        producer = create_producer({"bootstrap.servers": broker.bootstrap}, "test")
        for version in (1, 2, 3):
            for device in DEVICES:
                snapshot = Snapshot(device_id=device, first_seen=START, version=version, as_of=START, state={})
                home = partition(device.encode(), BEFORE)
                producer.produce(
                    self.topics.snapshots,
                    snapshot.encode(),
                    window_key(device, START),
                    home,
                    headers=[("n", str(version))],
                )
                key = f"\x1fof {device}"
                record = DerivedRecord(
                    key=key, device_id=device, first_seen=START, version=version, as_of=START, value={"device": device}
                )
                home = partition(key.encode(), BEFORE)
                producer.produce(self.place_topic, record.encode(), derived_key(key, device, START), home)
        gone = window_key(DEVICES[0], START + timedelta(hours=1))
        producer.produce(self.topics.snapshots, None, gone, partition(DEVICES[0].encode(), BEFORE))
        assert producer.flush(30) == 0
        self.worker_commits(0)

    def worker_commits(self, unread: int) -> None:
        """Let the group be so many records before the end of each partition."""
        with closing(Consumer({"bootstrap.servers": self.settings.kafka, "group.id": self.group})) as worker:
            places = [TopicPartition(self.topics.snapshots, number) for number in range(BEFORE)]
            ends = [worker.get_watermark_offsets(place, 10)[1] for place in places]
            offsets = [
                TopicPartition(place.topic, place.partition, end - unread)
                for place, end in zip(places, ends, strict=True)
            ]
            worker.commit(offsets=offsets, asynchronous=False)

    def counts(self) -> dict[str, int]:
        """The number of partitions of each topic."""
        listed = self._admin.list_topics(timeout=DEADLINE_S).topics
        names = [topic.name for topic in self.application.catalogue()]
        return {name: len(listed[name].partitions) for name in names if name in listed}

    def grow(self, partitions: int | None = AFTER, require_lease: Callable[[], object] = lambda: None) -> None:
        """Add partitions."""
        self.growth(self.application, partitions).run([self.group], self.reports.append, require_lease)

    def growth(self, application: Application, partitions: int | None) -> PartitionGrowth:
        """The growth of an application."""
        return PartitionGrowth(application, KafkaClients(self.settings.client()), self.settings.kafka, partitions)

    def records(self, topic: str) -> dict[bytes, list[Message]]:
        """The records of each key, in their order."""
        by_key: dict[bytes, list[Message]] = {}
        for message in everything(self.settings.kafka, topic):
            by_key.setdefault(message.key() or b"", []).append(message)
        return by_key

    def check(self) -> None:
        """All records are where their keys are, with headers and in their order, and the workers are beyond them."""
        assert set(self.counts().values()) == {AFTER}
        by_window = self.records(self.topics.snapshots)
        gone = by_window.pop(window_key(DEVICES[0], START + timedelta(hours=1)))
        assert [record.value() for record in gone] == [None]
        assert by_window.keys() == {window_key(device, START) for device in DEVICES}
        for window, records in by_window.items():
            assert {record.partition() for record in records} == {partition(window.split(b"@")[0], AFTER)}
            assert [Snapshot.model_validate_json(record.value() or b"").version for record in records] == [1, 2, 3]
            layout = ("stateloop-partitions", str(AFTER).encode())
            assert [record.headers() for record in records] == [[("n", str(n).encode()), layout] for n in (1, 2, 3)]
        derived = self.records(self.place_topic)
        for device in DEVICES:
            key = f"\x1fof {device}"
            records = derived[derived_key(key, device, START)]
            assert [record.partition() for record in records] == [partition(key.encode(), AFTER)] * 3
        consumer = Consumer({"bootstrap.servers": self.settings.kafka, "group.id": self.group})
        for place in consumer.committed([TopicPartition(self.topics.snapshots, number) for number in range(AFTER)], 10):
            assert place.offset == consumer.get_watermark_offsets(place, 10)[1]
        consumer.close()
