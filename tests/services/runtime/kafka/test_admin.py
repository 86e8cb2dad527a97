"""Topics and offsets of groups on a real broker, and a client that never answers."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar
from unittest.mock import Mock

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from services.runtime.errors import KafkaRequestError
from services.runtime.kafka import admin as admins
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.options import create_producer
from services.runtime.kafka.values import EARLIEST, LATEST, NEWEST, GroupOffset, NewTopic, OffsetAt, Partition
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.services.tools.broker.embedded import EmbeddedBroker

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LEADERLESS = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
)
ERRORS = (*LEADERLESS, KafkaError.TOPIC_AUTHORIZATION_FAILED)
GROUP_OF_A_TOPIC = {"auto.offset.reset": "earliest", "enable.auto.commit": False}


@pytest.fixture
def admin(broker: EmbeddedBroker) -> Iterator[KafkaAdmin]:
    made = KafkaAdmin({"bootstrap.servers": broker.bootstrap}, "test")
    yield made
    made.close()


@pytest.fixture
def topic(admin: KafkaAdmin, topics_prefix: str) -> str:
    """Return a topic of two partitions."""
    new = NewTopic(f"{topics_prefix}managed", 2, 1, {"retention.ms": "-1"})
    assert admin.create([new]) == [new.name]
    wait_until(lambda: new.name in admin.partition_counts(), "the topic", DEADLINE_S)
    return new.name


def milliseconds(second: int) -> int:
    return round((NOON + second * SECOND).timestamp() * 1000)


def write(broker: EmbeddedBroker, topic: str, seconds: range) -> None:
    producer = create_producer({"bootstrap.servers": broker.bootstrap}, "test")
    for second in seconds:
        producer.produce(topic, b"v", b"d", 0, timestamp=milliseconds(second))
    assert producer.flush(DEADLINE_S) == 0


@pytest.mark.kafka
def test_topics_are_created_once_and_grow(admin: KafkaAdmin, topic: str) -> None:
    other = NewTopic(f"{topic}.other", 1, 1, {})
    assert admin.create([NewTopic(topic, 7, 1, {}), other]) == [other.name]
    assert admin.create([]) == []
    admin.grow({topic: 3, other.name: 2})
    wait_until(lambda: admin.partition_counts()[topic] == 3, "the partitions", DEADLINE_S)
    with pytest.raises(KafkaRequestError, match=f"add partitions to the topic {topic} .INVALID_PARTITIONS") as failure:
        admin.grow({topic: 2})
    assert (failure.value.topic, failure.value.is_of_client) == (topic, False)


@pytest.mark.kafka
def test_offsets_of_a_new_partition_are_looked_up(admin: KafkaAdmin, topic: str) -> None:
    old, new = Partition(topic, 1), Partition(topic, 2)
    assert admin.offsets({old: LATEST}) == {old: 0}, "the client knows the number of partitions"
    admin.grow({topic: 3})
    assert admin.offsets({old: LATEST, new: LATEST}) == {old: 0, new: 0}


@pytest.mark.kafka
def test_a_topic_that_the_broker_refuses_is_named(admin: KafkaAdmin, topics_prefix: str) -> None:
    with pytest.raises(KafkaRequestError, match=r"create the topic .*INVALID_REPLICATION_FACTOR") as failure:
        admin.create([NewTopic(f"{topics_prefix}replicated", 1, 3, {})])
    assert failure.value.topic == f"{topics_prefix}replicated"
    with pytest.raises(KafkaRequestError, match="UNKNOWN_TOPIC_OR_PART"):
        admin.configs([f"{topics_prefix}missing"])
    with pytest.raises(KafkaRequestError, match="UNKNOWN_TOPIC_OR_PART"):
        admin.describe([f"{topics_prefix}missing"])


@pytest.mark.kafka
def test_settings_of_a_topic_change(admin: KafkaAdmin, topic: str) -> None:
    admin.alter(topic, {"retention.ms": "1000000000000", "cleanup.policy": "compact"})
    wait_until(lambda: admin.configs([topic])[topic]["cleanup.policy"] == "compact", "the settings", DEADLINE_S)
    assert admin.configs([topic])[topic]["retention.ms"] == "1000000000000"
    assert admin.configs([]) == {}
    described = admin.describe([topic])[topic]
    assert (len(described.id) > 10, described.partitions) == (True, 2)


@pytest.mark.kafka
def test_offsets_are_looked_up_by_time(broker: EmbeddedBroker, admin: KafkaAdmin, topic: str) -> None:
    write(broker, topic, range(5))
    full, empty = Partition(topic, 0), Partition(topic, 1)
    admin.delete_records({full: 2})
    admin.delete_records({})
    assert admin.offsets({full: EARLIEST, empty: EARLIEST}) == {full: 2, empty: 0}
    assert admin.offsets({full: LATEST, empty: LATEST}) == {full: 5, empty: 0}
    assert admin.offsets({full: milliseconds(3), empty: milliseconds(3)}) == {full: 3, empty: LATEST}
    assert admin.offsets({full: milliseconds(5)}) == {full: LATEST}
    assert admin.offsets({}) == {}
    with pytest.raises(KafkaRequestError, match="look offsets up"):
        admin.offsets({Partition(f"{topic}.missing", 0): LATEST}, 1.0)


@pytest.mark.kafka
def test_records_are_looked_up_with_their_times(broker: EmbeddedBroker, admin: KafkaAdmin, topic: str) -> None:
    write(broker, topic, range(5))
    full, empty = Partition(topic, 0), Partition(topic, 1)
    assert admin.records({full: milliseconds(3), empty: 0}) == {full: (3, milliseconds(3)), empty: (-1, -1)}
    assert admin.records({full: NEWEST, empty: NEWEST}) == {full: (4, milliseconds(4)), empty: (-1, -1)}
    assert admin.records({full: EARLIEST, empty: LATEST}) == {full: (0, -1), empty: (0, -1)}
    assert admin.records({full: LATEST}) == {full: (5, -1)}
    assert admin.records({}) == {}


class Leaders:
    """An admin client that responds with these results, for each partition: an offset, or the code of an error."""

    def __init__(self, *results: int) -> None:
        self.results = list(results)

    def list_offsets(self, partitions: dict[Any, Any], **_: float) -> dict[Any, Any]:
        return self._answers(partitions)

    def delete_records(self, partitions: list[TopicPartition], **_: float) -> dict[Any, Any]:
        return self._answers(partitions)

    def _answers(self, partitions: Iterable[Any]) -> dict[Any, Any]:
        result = self.results.pop(0)
        future: Future[Any] = Future()
        if result < 0 or result in ERRORS:
            future.set_exception(KafkaException(KafkaError(result)))
        else:
            future.set_result(SimpleNamespace(offset=result, timestamp=-1))
        return dict.fromkeys(partitions, future)


def test_offsets_of_a_partition_that_is_getting_its_leader_are_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Leaders(*LEADERLESS, KafkaError.NOT_LEADER_FOR_PARTITION, 7)
    monkeypatch.setattr(admins, "create_admin_client", lambda *_: client)
    place = Partition("events", 0)
    assert KafkaAdmin({}, "test").records({place: LATEST}) == {place: OffsetAt(7, -1)}
    client.results += [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError._TRANSPORT]  # noqa: SLF001
    with pytest.raises(KafkaRequestError, match="look up offsets of events"):
        KafkaAdmin({}, "test").records({place: LATEST})


def test_records_of_a_partition_that_is_getting_its_leader_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Leaders(*LEADERLESS, 7, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    monkeypatch.setattr(admins, "create_admin_client", lambda *_: client)
    KafkaAdmin({}, "test").delete_records({Partition("events", 0): 7})
    with pytest.raises(KafkaRequestError, match="delete records of the topic events"):
        KafkaAdmin({}, "test").delete_records({Partition("events", 0): 7})


def test_offsets_of_a_group_that_is_getting_its_coordinator_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Group:
        results: ClassVar = [KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, None]

        def committed(self, places: list[TopicPartition], _: float) -> list[TopicPartition]:
            if (code := self.results.pop(0)) is not None:
                raise KafkaException(KafkaError(code))
            return places

    monkeypatch.setattr(admins, "create_admin_client", lambda *_: None)
    monkeypatch.setattr(admins, "create_consumer", lambda *_: Group())
    place = Partition("events", 0)
    assert KafkaAdmin({}, "test").committed("g", [place])[place].offset < 0
    assert not Group.results


def test_an_offset_that_the_broker_refuses_for_one_partition_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, the group would look as if it had no offset there."""

    class Group:
        def committed(self, places: list[TopicPartition], _: float) -> list[SimpleNamespace]:
            errors = [None, KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)]
            return [
                SimpleNamespace(topic=place.topic, partition=place.partition, offset=-1001, metadata=None, error=error)
                for place, error in zip(places, errors, strict=True)
            ]

    monkeypatch.setattr(admins, "create_consumer", lambda *_: Group())
    with pytest.raises(KafkaRequestError, match="TOPIC_AUTHORIZATION_FAILED"):
        KafkaAdmin({}, "test").committed("g", [Partition("events", 0), Partition("events", 1)])


def test_threads_that_use_a_group_first_at_the_same_time_have_one_client(monkeypatch: pytest.MonkeyPatch) -> None:
    created: list[Mock] = []
    second = threading.Event()

    def create(*_: object) -> Mock:
        created.append(Mock())
        if len(created) > 1:
            second.set()
        second.wait(0.2)  # for the other thread, which must not come here
        return created[-1]

    monkeypatch.setattr(admins, "create_consumer", create)
    admin = KafkaAdmin({}, "test")
    threads = [threading.Thread(target=admin.commit_async, args=("g", {})) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(created) == 1


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_commit_is_refused_to_a_client_that_is_no_member_and_any_other_refusal_is_an_error(
    monkeypatch: pytest.MonkeyPatch, *, is_whole: bool
) -> None:
    """A broker refuses the whole commit, or each partition of it."""
    codes = [KafkaError.UNKNOWN_MEMBER_ID, KafkaError.TOPIC_AUTHORIZATION_FAILED]

    class Group:
        def commit(self, offsets: list[TopicPartition], **_: object) -> list[SimpleNamespace]:
            error = KafkaError(codes.pop(0))
            if is_whole:
                raise KafkaException(error)
            return [SimpleNamespace(topic=offset.topic, partition=offset.partition, error=error) for offset in offsets]

    monkeypatch.setattr(admins, "create_consumer", lambda *_: Group())
    admin, offsets = KafkaAdmin({}, "test"), {Partition("events", 0): GroupOffset(3)}
    assert not admin.commit("g", offsets)
    with pytest.raises(KafkaRequestError, match="TOPIC_AUTHORIZATION_FAILED"):
        admin.commit("g", offsets)


@pytest.mark.kafka
def test_offsets_of_a_group_are_committed_unless_it_has_members(
    broker: EmbeddedBroker, admin: KafkaAdmin, topic: str
) -> None:
    write(broker, topic, range(5))
    place, other = Partition(topic, 0), Partition(topic, 1)
    assert all(one.offset < 0 for one in admin.committed(topic, [place, other]).values())
    assert admin.commit(topic, {place: GroupOffset(3, "a note"), other: GroupOffset(0)})
    assert admin.committed(topic, [place, other]) == {place: (3, "a note"), other: (0, "")}
    member = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic, **GROUP_OF_A_TOPIC})
    member.subscribe([topic])
    wait_until(lambda: member.poll(0.1) is not None, "the member reads", DEADLINE_S)
    assert not admin.commit(topic, {place: GroupOffset(4)})
    member.close()
    assert admin.commit(topic, {place: GroupOffset(5)})
    assert admin.committed(topic, [place]) == {place: (5, "")}


def test_a_broker_that_is_away_is_an_error_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admins, "ANSWER_S", 0.2)
    admin = KafkaAdmin({"bootstrap.servers": "127.0.0.1:1"}, "test")
    for request in (
        lambda: admin.partition_counts(within_s=0.2),
        lambda: admin.partition_counts(["events"], 0.2),
        lambda: admin.configs(["events"], 0.2),
        lambda: admin.describe(["events"]),
    ):
        with pytest.raises(KafkaRequestError) as failure:
            request()
        assert failure.value.is_of_client


def test_an_answer_that_never_comes_is_not_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its broker stopped while the client waited."""

    class Client:
        def create_topics(self, new: list[Any], **_: object) -> dict[str, Future[None]]:
            return {one.topic: Future() for one in new}

    monkeypatch.setattr(admins, "create_admin_client", lambda *_: Client())
    monkeypatch.setattr(admins, "CHANGE_S", 0.0)
    monkeypatch.setattr(admins, "GRACE_S", 0.0)
    with pytest.raises(KafkaRequestError, match="_TIMED_OUT: no answer") as failure:
        KafkaAdmin({}, "test").create([NewTopic("events", 1, 1, {})])
    assert failure.value.is_of_client
