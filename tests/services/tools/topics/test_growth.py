"""Topics that get more partitions, on a real broker."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from contracts import AlertRule, Alerts, Application, Table, Webhook
from contracts.records.named_states import named
from contracts.wire import Snapshot
from contracts.wire.window_key import window_key
from services.query.ingest import with_partition_counts
from services.runtime.job_progress import JobProgress, Published
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.blocking import TransactionalKafkaProducer
from services.runtime.kafka.clients import KafkaClients
from services.tools.broker.readiness import wait_until
from services.tools.topics import growth
from services.tools.topics.errors import FewerPartitionsError, WebhooksError
from services.tools.topics.followers import topic_ends
from services.tools.topics.growth import PartitionGrowth
from services.tools.topics.rewrite import RecordMover, rewrite
from tests.deadline import DEADLINE_S
from tests.services.tools.topics.grown import AFTER, BEFORE, DEVICES, START, Machine, Ping, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contracts.records.record import Record

pytestmark = pytest.mark.kafka

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
ALARMS = Table("alarm_rules", AlertRule)


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
    adding.run([world.group], world.reports.append, lambda: steps.append(LEASE))
    waited = steps.index(0.001)
    assert waited < steps.index({BEFORE, AFTER})
    assert steps[waited + 1] == LEASE, "a growth that was frozen meanwhile asks the operator for nothing"


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


@pytest.mark.parametrize("is_killed", [False, True])
def test_readers_never_find_a_part_of_the_copies(
    world: World, monkeypatch: pytest.MonkeyPatch, *, is_killed: bool
) -> None:
    """An interrupted call has copied some versions of a key: behind the newest one, they would be what is left."""
    moved, done = RecordMover.moved, count(1)
    killed: list[TransactionalKafkaProducer] = []

    @contextmanager
    def left_open(producer: TransactionalKafkaProducer) -> Iterator[None]:
        """Begin a transaction that nothing ends, as in a process that is killed, and keep its client."""
        producer.begin()
        killed.append(producer)
        yield

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
