"""Topics that get more partitions, on a real broker."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Annotated

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from pydantic import BaseModel

from contracts import AlertRule, Alerts, Application, Derived, Event, Latest, State, Table, Topics, Webhook
from contracts.records.named_states import named
from contracts.settings import KafkaSettings
from contracts.wire import DerivedRecord, Snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import derived_key, window_key
from services.query.ingest import with_partition_counts
from services.runtime.job_progress import JobProgress, Published
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.blocking import TransactionalKafkaProducer
from services.runtime.kafka.clients import KafkaClients
from services.runtime.kafka.options import create_producer
from services.tools.broker.readiness import wait_until
from services.tools.topics import growth
from services.tools.topics.__main__ import make
from services.tools.topics.errors import FewerPartitionsError, WebhooksError
from services.tools.topics.followers import topic_ends
from services.tools.topics.growth import PartitionGrowth
from services.tools.topics.rewrite import RecordMover, rewrite
from services.tools.topics.settings import TopicsSettings
from spark_app.errors import LeaseLostError
from tests.deadline import DEADLINE_S
from tests.spark_app.running import everything

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from confluent_kafka import Message

    from contracts.records.record import Record
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kafka

BEFORE, AFTER = 2, 5
GROUP = "workers"
LEASE = "lease"
WRITES = (
    (KafkaAdmin, "grow"),
    (KafkaAdmin, "commit"),
    (KafkaAdmin, "delete_records"),
    (TransactionalKafkaProducer, "__init__"),
    (TransactionalKafkaProducer, "commit"),
)
"""What changes topics and groups, and ends the transaction of another command."""
READS = ((KafkaAdmin, "partition_counts"), (KafkaAdmin, "offsets"), (KafkaAdmin, "committed"))
START = datetime(2026, 5, 1, 8, tzinfo=UTC)
DEVICES = [f"device-{number}" for number in range(30)]


ALARMS = Table("alarm_rules", AlertRule)


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


@pytest.fixture
def world(broker: EmbeddedBroker, topics_prefix: str, monkeypatch: pytest.MonkeyPatch) -> World:
    """Give topics with few partitions."""
    monkeypatch.setattr(growth, "METADATA_S", 0.0)
    monkeypatch.setattr(growth, "FOLLOW_S", 0.0)
    return World(broker, topics_prefix)


def test_records_are_where_their_keys_are(world: World) -> None:
    """Also after a growth that was interrupted before the last topic, at which the query service looks."""
    world.grow()
    world.check()
    world.grow()
    world.grow(None)
    world.check()
    with pytest.raises(FewerPartitionsError, match=f"has {AFTER} partitions, not 3 or fewer"):
        world.grow(3)


def test_the_topic_of_events_may_have_the_partitions_before(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another application that shares it has added them: the records of this one are not where their keys will be."""
    admin, used = KafkaAdmin(world.settings.client(), "test"), list[set[int]]()
    admin.grow({world.topics.events: AFTER})
    wait_until(lambda: world.counts()[world.topics.events] == AFTER, "the partitions", 30)

    def noted(*arguments: object) -> None:
        states = with_partition_counts(named(world.application), admin, world.settings.kafka) or {}
        used.append({state.partitions for state in states.values()})
        rewrite(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(growth, "rewrite", noted)
    world.grow(None)
    assert used == [{BEFORE}] * 2
    world.check()


def test_records_move_when_all_brokers_list_the_partitions(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An instance of the query service that begins to read meanwhile must learn of them."""
    steps: list[object] = []

    def sleep(seconds: float) -> None:
        steps.append(seconds)
        time.sleep(seconds)

    monkeypatch.setattr(growth, "METADATA_S", 0.001)
    monkeypatch.setattr(growth, "rewrite", lambda *_: steps.append(set(world.counts().values())))
    kafka = KafkaClients(world.settings.client())
    adding = PartitionGrowth(world.application, kafka, world.settings.kafka, AFTER, sleep)
    adding.run([world.group], world.reports.append, lambda: None)
    assert steps.index(0.001) < steps.index({BEFORE, AFTER})


def test_a_command_that_is_run_again_waits_for_the_query_service(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one was killed in its last wait."""
    world.grow()
    monkeypatch.setattr(growth, "FOLLOW_S", 0.001)
    slept: list[float] = []
    kafka = KafkaClients(world.settings.client())
    for partitions in (AFTER, None):
        again = PartitionGrowth(world.application, kafka, world.settings.kafka, partitions, slept.append)
        again.run([world.group], pytest.fail, lambda: None)
    assert slept == [0.001], "not without a number: then nothing shows that there was a growth"


def test_due_calls_of_webhooks_are_not_moved(world: World) -> None:
    alarms = Alerts("alarms", ALARMS, lambda *_: True, webhook=Webhook("pager"))
    application = Application(
        name="machines", event=Ping, state=Machine, topics=world.topics, tables=(ALARMS,), alerts=(alarms,)
    )
    with pytest.raises(WebhooksError, match="calls of webhooks that are due"):
        world.growth(application, AFTER)
    assert not world.growth(application, BEFORE).missing


def test_an_interrupted_growth_continues(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    last = world.application.layout_topic

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(growth, "rewrite", killed)
        with pytest.raises(KeyboardInterrupt):
            world.grow()
    assert {name for name, count in world.counts().items() if count == BEFORE} == {last}
    world.grow(None)
    world.check()


def test_a_group_that_has_read_nothing_and_has_no_workers_is_not_waited_for(world: World) -> None:
    """Also by the next growth: the first one has left it at the beginning."""
    world.group = f"{world.group}-unused"
    world.grow()
    world.grow(AFTER + 1)
    assert not [line for line in world.reports if "waits" in line]
    consumer = Consumer({"bootstrap.servers": world.settings.kafka, "group.id": world.group})
    places = [TopicPartition(world.topics.snapshots, number) for number in range(AFTER + 1)]
    assert {place.offset for place in consumer.committed(places, 10)} == {0}
    consumer.close()


def test_copies_have_the_progress_of_the_job(world: World) -> None:
    progress = JobProgress(KafkaAdmin(world.settings.client(), "progress"), world.topics.snapshots)
    later = START + timedelta(seconds=1)
    progress.record(START, 1, {0: 4})
    progress.record(later, 1, {1: 4})
    wait_until(lambda: len(progress.read(range(BEFORE)) or {}) == BEFORE, "the progress", DEADLINE_S)
    world.grow()
    found = progress.read(range(AFTER)) or {}
    ends = topic_ends(KafkaAdmin(world.settings.client(), "ends"), world.topics.snapshots)
    assert found == {place.number: Published(end, START, 1) for place, end in ends.items()}
    progress.close()


def test_the_lease_is_required_right_before_each_write(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that was frozen for longer than a lease wakes anywhere, and a job may have started meanwhile."""
    progress = JobProgress(KafkaAdmin(world.settings.client(), "progress"), world.topics.snapshots)
    progress.record(START, 1, {0: 4, 1: 4})
    wait_until(lambda: len(progress.read(range(BEFORE)) or {}) == BEFORE, "the progress", DEADLINE_S)
    progress.close()
    steps: list[str] = []

    def traced(owner: type, name: str) -> None:
        method = getattr(owner, name)

        def noted(*arguments: object, **options: object) -> object:
            steps.append(name)
            return method(*arguments, **options)

        monkeypatch.setattr(owner, name, noted)

    for owner, name in (*WRITES, *READS):
        traced(owner, name)
    world.grow(AFTER, lambda: steps.append(LEASE))
    names = {name for _, name in WRITES}
    writes = [number for number, step in enumerate(steps) if step in names]
    assert {steps[number] for number in writes} == names
    assert all(steps[number - 1] == LEASE for number in writes), steps
    world.check()


def test_a_growth_that_another_command_has_completed_changes_nothing(world: World) -> None:
    """It has read the number of partitions before, as while it built the state."""
    late = world.growth(world.application, AFTER)
    late_and_smaller = world.growth(world.application, AFTER - 1)
    world.grow()
    world.worker_commits(1)
    late.run([world.group], pytest.fail, lambda: None)
    with pytest.raises(FewerPartitionsError):
        late_and_smaller.run([world.group], pytest.fail, lambda: None)
    with closing(Consumer({"bootstrap.servers": world.settings.kafka, "group.id": world.group})) as group:
        place = TopicPartition(world.topics.snapshots, 0)
        assert group.committed([place], 10)[0].offset == group.get_watermark_offsets(place, 10)[1] - 1


@contextmanager
def left_open(producer: TransactionalKafkaProducer) -> Iterator[None]:
    """Begin a transaction that nothing ends, as in a process that is killed."""
    producer.begin()
    yield


@pytest.mark.parametrize("is_killed", [False, True])
def test_readers_never_find_a_part_of_the_copies(
    world: World, monkeypatch: pytest.MonkeyPatch, *, is_killed: bool
) -> None:
    """An interrupted call has copied some versions of a key: behind the newest one, they would be what is left."""
    moved, done = RecordMover.moved, count(1)

    def interrupted(mover: RecordMover, record: Record) -> tuple[int, bytes | None] | None:
        if next(done) == len(DEVICES) + 5:
            raise KeyboardInterrupt
        return moved(mover, record)

    with monkeypatch.context() as patch:
        patch.setattr(RecordMover, "moved", interrupted)
        if is_killed:
            patch.setattr(TransactionalKafkaProducer, "transaction", left_open)
        with pytest.raises(KeyboardInterrupt):
            world.grow()
    newest = world.records(world.topics.snapshots)[window_key(DEVICES[1], START)][-1]
    assert Snapshot.model_validate_json(newest.value() or b"").version == 3
    world.grow(None)
    world.check()


def test_it_waits_until_the_workers_have_derived_from_all_snapshots(world: World) -> None:
    world.worker_commits(1)
    growing = threading.Thread(target=world.grow)
    growing.start()
    wait_until(lambda: bool(world.reports), "a report", DEADLINE_S)
    assert f"have read {world.topics.snapshots}" in world.reports[0]
    assert set(world.counts().values()) == {BEFORE}
    world.worker_commits(0)
    growing.join(DEADLINE_S)
    world.check()


def test_it_waits_until_the_workers_have_stopped(world: World) -> None:
    worker = Consumer({"bootstrap.servers": world.settings.kafka, "group.id": world.group})
    worker.subscribe([world.topics.snapshots])
    wait_until(lambda: worker.poll(0.1) is None and bool(worker.assignment()), "the worker has partitions", DEADLINE_S)
    growing = threading.Thread(target=world.grow)
    growing.start()
    wait_until(lambda: bool(world.reports), "a report", DEADLINE_S)
    assert world.reports == [f"waits until the workers of the group {world.group} have stopped"]
    assert set(world.counts().values()) == {BEFORE}
    worker.close()
    growing.join(DEADLINE_S)
    world.check()


def test_each_look_requires_the_lease(world: World) -> None:
    """A command that was frozen while it waited moves no group behind what a job has written meanwhile."""
    own = {"bootstrap.servers": world.settings.kafka, "group.id": world.group, "enable.auto.commit": False}
    worker = Consumer(own)
    worker.subscribe([world.topics.snapshots])
    wait_until(lambda: worker.poll(0.1) is None and bool(worker.assignment()), "the worker has partitions", DEADLINE_S)
    lost = threading.Event()

    def require_lease() -> None:
        if lost.is_set():
            raise LeaseLostError("checkpoint", "a job")

    with ThreadPoolExecutor() as threads:
        growing = threads.submit(world.grow, AFTER, require_lease)
        wait_until(lambda: bool(world.reports), "a report", DEADLINE_S)
        lost.set()
        producer = create_producer({"bootstrap.servers": world.settings.kafka}, "job")
        producer.produce(world.topics.snapshots, b"a snapshot", b"key", 0)
        assert producer.flush(30) == 0
        worker.close()
        with pytest.raises(LeaseLostError):
            growing.result(60)
    with closing(Consumer(own)) as group:
        place = TopicPartition(world.topics.snapshots, 0)
        assert group.committed([place], 10)[0].offset == group.get_watermark_offsets(place, 10)[1] - 1
