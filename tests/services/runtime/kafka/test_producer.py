"""Records are written once, in their order, or an error is raised; in a transaction, all of them or none."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from contracts.model.application import LARGEST_RECORD
from contracts.model.topics import PARTITIONER
from contracts.types.key import LARGEST_KEY
from services.runtime.errors import DeliveryFailedError, KafkaRequestError
from services.runtime.kafka.blocking import BlockingKafkaProducer, TransactionalKafkaProducer
from services.runtime.kafka.producer import KafkaProducer, message_timeout
from services.runtime.kafka.values import GroupOffset, Output, Partition
from tests.deadline import DEADLINE_S
from tests.services.enrichment.in_memory import until
from tests.spark_app.running import everything

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.services.tools.broker.embedded import EmbeddedBroker

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
SOON = timedelta(milliseconds=200)
TOO_LARGE = bytes(2_000_000)


class Full:
    """A client that has room for so many records, and acknowledges them in no time, or when `reports` are called."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.room = 0
        self.refusals = 0
        self.taken: list[bytes | None] = []
        self.reports: list[Callable[[KafkaError | None, Placed], None]] | None = None

    def produce(
        self,
        _: str,
        value: bytes | None,
        *__: object,
        on_delivery: Callable[[KafkaError | None, Placed], None],
        **___: object,
    ) -> None:
        if value == TOO_LARGE:
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        if not self.room:
            self.refusals += 1
            raise BufferError
        self.room -= 1
        self.taken.append(value)
        if self.reports is None:
            on_delivery(None, Placed())
        else:
            self.reports.append(on_delivery)

    def poll(self, wait_s: float) -> int:
        self.room += bool(wait_s) and self.refusals > 1
        time.sleep(0.001)
        return 0

    def flush(self, _: float) -> int:
        return 0


class Placed:
    """The message of a written record."""

    def offset(self) -> int:
        return 7

    def topic(self) -> str:
        return "feedback"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Full:
    made = Full()
    for module in ("producer", "blocking"):
        monkeypatch.setattr(f"services.runtime.kafka.{module}.create_producer", lambda *_: made)
    return made


@pytest.fixture
def topic(broker: EmbeddedBroker, topics_prefix: str) -> str:
    """Return the name of a topic with two partitions."""
    name = f"{topics_prefix}written"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(DEADLINE_S)
    return name


@asynccontextmanager
async def producing(options: dict[str, Any], drop_after: timedelta | None = None) -> AsyncIterator[KafkaProducer]:
    producer = KafkaProducer(options, "test", drop_after)
    async with asyncio.timeout(DEADLINE_S):
        yield producer
        await producer.close()


def outputs(topic: str, *values: bytes) -> list[Output]:
    return [Output(topic, b"d", value, 0) for value in values]


def fill(producer: BlockingKafkaProducer) -> None:
    """Write records until one is reported."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        producer.enqueue(Output("feedback", None, b"b"))


def interrupt(producer: TransactionalKafkaProducer, output: Output) -> None:
    """Write a record in a transaction that Ctrl-C ends."""
    with producer.transaction():
        producer.enqueue(output)
        raise KeyboardInterrupt


def at(broker: EmbeddedBroker) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap}


def test_the_largest_record_that_may_be_declared_is_taken_by_a_client_as_it_comes() -> None:
    producer = Producer(NOWHERE)
    producer.produce("feedback", value=bytes(LARGEST_RECORD), key=bytes(LARGEST_KEY), headers={"trace": bytes(1024)})
    producer.purge()
    assert producer.flush(1) == 0


async def test_a_record_that_waits_for_room_stays_before_later_ones(client: Full) -> None:
    producer = KafkaProducer({}, "test")
    earlier = producer.send(outputs("feedback", b"a", b"b"))
    await until(lambda: client.refusals > 0)
    client.room = 4
    assert await producer.send(outputs("feedback", b"c", b"d")) == [7, 7]
    await earlier
    await producer.close()
    assert client.taken == [b"a", b"b", b"c", b"d"]


async def test_a_record_for_which_nothing_waits_any_more_is_dropped_while_it_waits_for_room(client: Full) -> None:
    producer = KafkaProducer({}, "test")
    producer.send(outputs("feedback", b"a")).cancel()
    kept = producer.send(outputs("feedback", b"b"))
    client.room = 2
    await kept
    await producer.close()
    assert client.taken == [b"b"]


async def test_an_error_is_raised_when_the_other_records_of_the_call_are_acknowledged(client: Full) -> None:
    """Who repeats the call would otherwise write between them."""
    client.room, client.reports = 3, []
    producer = KafkaProducer({}, "test")
    refused = producer.send(outputs("feedback", TOO_LARGE, b"a", b"b"))
    other = producer.send(outputs("feedback", b"c"))
    for report in (client.reports[0], client.reports[2]):
        report(None, Placed())
    await other
    assert not refused.done()
    client.reports[1](None, Placed())
    with pytest.raises(DeliveryFailedError, match="MSG_SIZE_TOO_LARGE"):
        await refused
    await producer.close()


async def test_a_dropped_record_is_reported_only_if_no_other_one_failed(client: Full) -> None:
    client.room, client.reports = 3, []
    producer = KafkaProducer({}, "test")
    sent = producer.send(outputs("feedback", b"a", b"b", b"c"))
    codes = KafkaError._MSG_TIMED_OUT, KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._MSG_TIMED_OUT  # noqa: SLF001
    for report, code in zip(client.reports, codes, strict=True):
        report(KafkaError(code), Placed())
    with pytest.raises(DeliveryFailedError, match="TOPIC_AUTHORIZATION_FAILED"):
        await sent
    await producer.close()


@pytest.mark.kafka
async def test_the_offsets_are_those_of_the_records(broker: EmbeddedBroker, topic: str) -> None:
    headers = (("trace", b"1"), ("none", None))
    async with producing(at(broker)) as producer:
        first = await producer.send(outputs(topic, b"a", b"b"))
        second, third = await asyncio.gather(
            producer.send([Output(topic, b"d", None, 0, 1_767_225_600_123, headers), Output(topic, b"d", b"e", 1)]),
            producer.send(outputs(topic, b"f")),
        )
        assert await producer.send([]) == []
    assert [*first, *second, *third] == [0, 1, 2, 0, 3]
    found = [one for one in everything(broker.bootstrap, topic) if one.partition() == 0]
    assert [one.value() for one in found] == [b"a", b"b", None, b"f"]
    assert found[2].headers() == list(headers)
    assert found[2].timestamp()[1] == 1_767_225_600_123


@pytest.mark.kafka
async def test_a_producer_can_be_used_after_an_error(broker: EmbeddedBroker, topic: str) -> None:
    async with producing(at(broker)) as producer:
        with pytest.raises(DeliveryFailedError, match=f"could not be written to {topic}") as failure:
            await producer.send(outputs(topic, TOO_LARGE, b"a"))
        assert (failure.value.code, failure.value.is_dropped) == ("MSG_SIZE_TOO_LARGE", False)
        assert await producer.send(outputs(topic, b"b")) == [1]


async def test_a_record_that_is_not_acknowledged_in_time_is_dropped() -> None:
    async with producing(NOWHERE, SOON) as producer:
        with pytest.raises(DeliveryFailedError) as failure:
            await producer.send(outputs("feedback", b"a", b"b"))
        assert failure.value.is_dropped


@pytest.mark.kafka
def test_a_thread_waits_for_its_records(broker: EmbeddedBroker, topic: str) -> None:
    producer = BlockingKafkaProducer(at(broker), "test")
    assert producer.send(Output(topic, b"d", b"%d" % number, number % 2) for number in range(4)) == [0, 0, 1, 1]
    producer.enqueue(Output(topic, b"d", b"4", 0))
    assert producer.flush() == 0
    with pytest.raises(DeliveryFailedError, match="MSG_SIZE_TOO_LARGE"):
        producer.send(outputs(topic, TOO_LARGE))
    assert producer.send(outputs(topic, b"5")) == [3]


def test_a_thread_waits_for_room(client: Full) -> None:
    producer = BlockingKafkaProducer({}, "test")
    producer.enqueue(Output("events", None, b"a"))
    assert client.taken == [b"a"]
    assert client.refusals == 2, "it lets the client work meanwhile"


def test_a_record_that_is_not_written_is_reported_once_with_the_next_one() -> None:
    producer = BlockingKafkaProducer(NOWHERE, "test", SOON)
    producer.enqueue(Output("events", None, b"a"))
    assert producer.flush(0.0) == 1
    time.sleep(2 * SOON.total_seconds())
    with pytest.raises(DeliveryFailedError, match="events"):
        fill(producer)
    with pytest.raises(DeliveryFailedError, match="feedback"):
        producer.send([Output("feedback", None, b"b")])
    assert producer.flush() == 0


def test_a_producer_without_the_right_to_write_reports_it(client: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: float) -> int:
        raise KafkaException(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED, fatal=True))

    producer = BlockingKafkaProducer({}, "test")
    producer.enqueue(Output("events", None, b"a"))
    monkeypatch.setattr(client, "flush", refused, raising=False)
    with pytest.raises(DeliveryFailedError, match=r"not be written to events \(CLUSTER_AUTHORIZATION_FAILED"):
        producer.flush()


def test_a_producer_may_drop_nothing_but_after_the_given_time(monkeypatch: pytest.MonkeyPatch) -> None:
    configs: list[dict[str, Any]] = []
    monkeypatch.setattr("services.runtime.kafka.options.Producer", configs.append)
    BlockingKafkaProducer({"bootstrap.servers": "b", "message.timeout.ms": 1}, "test", SOON, {"linger.ms": 3})
    (config,) = configs
    assert (config["bootstrap.servers"], config["message.timeout.ms"], config["linger.ms"]) == ("b", 200, 3)
    assert (config["partitioner"], config["enable.idempotence"]) == (PARTITIONER, True)


@pytest.mark.kafka
def test_readers_see_whole_transactions_with_their_offsets(broker: EmbeddedBroker, topic: str) -> None:
    place = Partition(topic, 0)
    producer = TransactionalKafkaProducer(at(broker), "test", topic, group=topic)
    with producer.transaction():
        producer.enqueue(Output(topic, b"d", b"a", 0))
    with pytest.raises(KeyboardInterrupt):
        interrupt(producer, Output(topic, b"d", b"aborted", 0))
    producer.begin()
    producer.enqueue(Output(topic, b"d", b"b", 0))
    producer.commit({place: GroupOffset(77, "a note")})
    producer.close()
    assert [one.value() for one in everything(broker.bootstrap, topic)] == [b"a", b"b"]
    consumer = Consumer({**at(broker), "group.id": topic})
    (committed,) = consumer.committed([TopicPartition(*place)], DEADLINE_S)
    consumer.close()
    assert (committed.offset, committed.metadata) == (77, "a note")


@pytest.mark.kafka
def test_a_later_producer_of_the_same_id_aborts_an_open_transaction(broker: EmbeddedBroker, topic: str) -> None:
    earlier = TransactionalKafkaProducer(at(broker), "test", topic)
    earlier.begin()
    earlier.enqueue(Output(topic, b"d", b"of the earlier one", 0))
    later = TransactionalKafkaProducer(at(broker), "test", topic)
    with pytest.raises(KafkaRequestError, match="did not commit a transaction"):
        earlier.commit()
    with pytest.raises(DeliveryFailedError, match="_FENCED"):
        earlier.enqueue(Output(topic, b"d", b"of the earlier one", 0))
    with later.transaction():
        later.enqueue(Output(topic, b"d", b"of the later one", 0))
    assert [one.value() for one in everything(broker.bootstrap, topic)] == [b"of the later one"]


@pytest.mark.parametrize(("after", "milliseconds"), [(None, 0), (SOON, 200), (timedelta(microseconds=1), 1)])
def test_a_client_drops_records_after_the_given_time_or_never(after: timedelta | None, milliseconds: int) -> None:
    assert message_timeout(after) == {"message.timeout.ms": milliseconds}, "0 is for ever"
