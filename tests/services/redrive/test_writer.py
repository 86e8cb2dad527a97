"""A record that is sent again is there in the end, or an error is raised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from contracts.model.topics import PARTITIONER
from services.redrive.errors import WriteError
from services.redrive.writer import KafkaWriter
from tests.services.redrive.in_memory import AWAY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from services.redrive.redrive import Headers

LARGEST_EVENT = 10 * 1024 * 1024


class Broker:
    """A producer whose broker takes some records, and reports each when it is polled."""

    def __init__(self) -> None:
        self.config: Mapping[str, Any] = {}
        self.written: list[tuple[str, bytes | None, Headers]] = []
        self.reports: list[Callable[[], None]] = []
        self.full = 0
        self.refused: KafkaError | None = None
        self.raises = False
        self.left = 0

    def produce(
        self,
        topic: str,
        value: bytes | None,
        _key: bytes | None,
        *,
        timestamp: int,
        headers: Headers,
        on_delivery: Callable[[KafkaError | None, Message], None],
    ) -> None:
        if self.full:
            raise BufferError
        if self.raises:
            raise KafkaException(AWAY)
        self.written.append((topic, value, headers))
        self.reports.append(lambda: on_delivery(self.refused, Message(topic, 0, timestamp)))

    def poll(self, timeout: float) -> int:
        self.full = max(0, self.full - bool(timeout))
        reports, self.reports = self.reports, []
        for report in reports:
            report()
        return len(reports)

    def flush(self, _: float) -> int:
        self.poll(0)
        return self.left


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker()

    def producer(config: Mapping[str, Any]) -> Broker:
        made.config = config
        return made

    monkeypatch.setattr("services.runtime.kafka.options.Producer", producer)
    return made


def write(ours: KafkaWriter, value: bytes = b"v", headers: Headers | None = None) -> None:
    ours.write("events", b"d1", value, 7, headers or {})


def test_a_record_is_written_once_with_where_it_was_first(broker: Broker) -> None:
    ours = KafkaWriter({})
    write(ours, b"a", {"origin": b"events/0/7"})
    write(ours, b"b")
    ours.close()
    assert broker.written == [("events", b"a", {"origin": b"events/0/7"}), ("events", b"b", {})]


def test_a_record_waits_for_room(broker: Broker) -> None:
    broker.full = 2
    ours = KafkaWriter({})
    write(ours)
    assert len(broker.written) == 1
    assert not broker.full, "it lets the client work meanwhile"


def test_a_refused_record_is_reported_with_the_next_one(broker: Broker) -> None:
    ours = KafkaWriter({})
    broker.refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    write(ours)
    with pytest.raises(WriteError, match="events"):
        write(ours)
    assert len(broker.written) == 1, "and nothing more is written"


def test_a_refused_last_record_is_reported_at_close(broker: Broker) -> None:
    ours = KafkaWriter({})
    broker.refused = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
    write(ours)
    with pytest.raises(WriteError, match="MSG_SIZE_TOO_LARGE"):
        ours.close()


def test_an_unconfirmed_record_is_reported(broker: Broker) -> None:
    ours = KafkaWriter({})
    write(ours)
    broker.left = 3
    with pytest.raises(WriteError, match="3 records were not confirmed"):
        ours.close()


def test_a_record_that_the_client_refuses_is_reported(broker: Broker) -> None:
    broker.raises = True
    with pytest.raises(WriteError, match="events"):
        write(KafkaWriter({}))


def test_a_record_goes_to_its_partition_once_and_complete(broker: Broker) -> None:
    """The client's own limit is a tenth of what a broker may be configured to take, and its partitioner another."""
    KafkaWriter({"bootstrap.servers": "b"})
    assert broker.config["bootstrap.servers"] == "b"
    assert broker.config["partitioner"] == PARTITIONER
    assert broker.config["enable.idempotence"] is True
    assert broker.config["message.max.bytes"] > LARGEST_EVENT
