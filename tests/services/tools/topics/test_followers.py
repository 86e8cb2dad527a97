"""The groups for which a growth waits, on a real broker."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import pytest
from confluent_kafka import Consumer, TopicPartition

from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.blocking import TransactionalKafkaProducer
from services.runtime.kafka.options import create_producer
from services.runtime.kafka.reader import BlockingKafkaReader
from services.runtime.kafka.values import LATEST, Output, Partition
from services.tools.broker.readiness import wait_until
from services.tools.topics.followers import ConsumerGroup
from spark_app.errors import LeaseLostError
from tests.deadline import DEADLINE_S
from tests.services.tools.topics.grown import AFTER, BEFORE, World

pytestmark = pytest.mark.kafka


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


@pytest.mark.parametrize("name", [None, "derivers"])
def test_a_group_of_enrichment_workers_does_not_stand_for_derive_workers(world: World, name: str | None) -> None:
    """The derive workers were killed before their first commit."""
    enrichment_group, default = world.group, world.application.derive_group
    derive_group = name and f"{world.topics.prefix}{name}"
    groups = [default, enrichment_group, *filter(None, [derive_group])]
    growth = world.growth(world.application, AFTER)
    run = partial(growth.run, groups, world.reports.append, lambda: None, derive_group)
    growing = threading.Thread(target=run)
    growing.start()
    wait_until(lambda: bool(world.reports), "a report", DEADLINE_S)
    assert f"waits until the workers of the group {derive_group or default} have read" in world.reports[0]
    assert set(world.counts().values()) == {BEFORE}
    world.group = derive_group or default
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


def read_again(world: World, unread: int) -> dict[int, int]:
    """Let a new group read all, but for so many records of partition 0; return what it commits as a worker does."""
    world.group = f"{world.group}-again"
    messages = [message for found in world.records(world.topics.snapshots).values() for message in found]
    last = dict(sorted((message.partition() or 0, message.offset() or 0) for message in messages))
    behind = {number: offset + 1 - (unread if number == 0 else 0) for number, offset in last.items()}
    with closing(Consumer({"bootstrap.servers": world.settings.kafka, "group.id": world.group})) as worker:
        places = [TopicPartition(world.topics.snapshots, number, offset) for number, offset in behind.items()]
        worker.commit(offsets=places, asynchronous=False)
    return behind


def has_read_all(world: World) -> bool:
    """Return whether no record is left for the workers of the group, of whom some have committed."""
    client = {"bootstrap.servers": world.settings.kafka}
    with closing(KafkaAdmin(client, "test")) as admin, closing(BlockingKafkaReader(client, "test")) as reader:
        group = ConsumerGroup(admin, reader, world.topics.snapshots, world.group, lambda: None)
        answers = {group.has_read_all(is_used=True) for _ in range(2)}
    (answer,) = answers
    return answer


def test_the_next_growth_waits_for_no_group_that_has_read_the_copies(world: World) -> None:
    """Behind the copies of a partition there is the marker of their transaction, which no worker receives."""

    def report(line: str) -> None:
        assert "waits" not in line

    world.grow()
    read_again(world, 0)
    world.growth(world.application, AFTER + 1).run([world.group], report, lambda: None, world.group)
    assert set(world.counts().values()) == {AFTER + 1}


def test_a_group_with_an_unread_copy_has_not_read_all(world: World) -> None:
    world.grow()
    read_again(world, 1)
    assert not has_read_all(world)


@pytest.mark.parametrize(("end", "is_read"), [("none", True), ("abort", True), ("commit", False)])
def test_records_of_a_transaction_count_when_it_is_committed(world: World, end: str, *, is_read: bool) -> None:
    """Those of an aborted one are received by no worker, and an open one may still be aborted."""
    client, place = {"bootstrap.servers": world.settings.kafka}, Partition(world.topics.snapshots, 0)
    name = f"{world.topics.prefix}transaction"
    world.grow()
    behind = read_again(world, 0)[0] + 1
    producer = TransactionalKafkaProducer(client, "test", name)
    producer.begin()
    producer.enqueue(Output(place.topic, b"key", b"a snapshot", place.number))
    with closing(KafkaAdmin(client, "test")) as admin:
        wait_until(lambda: admin.records({place: LATEST})[place].offset > behind, "the record", DEADLINE_S)
        if end != "none":
            producer.abort() if end == "abort" else producer.commit()
            wait_until(lambda: admin.offsets({place: LATEST})[place] == behind + 2, "the marker", DEADLINE_S)
    assert has_read_all(world) == is_read
    TransactionalKafkaProducer(client, "test", name)  # aborts one that is open
