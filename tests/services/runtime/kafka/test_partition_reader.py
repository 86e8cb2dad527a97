"""A reader of assigned partitions whose client returns these messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from contracts.records.record import Record
from services.runtime.errors import ConsumerFailedError
from services.runtime.kafka import consumer_thread
from services.runtime.kafka.partition_reader import KafkaPartitionReader
from services.runtime.kafka.values import Partition

if TYPE_CHECKING:
    from collections.abc import Iterable

PLACE = Partition("events", 1)
END = KafkaError(KafkaError._PARTITION_EOF)  # noqa: SLF001  # a public name
LOST = KafkaError(KafkaError._AUTO_OFFSET_RESET)  # noqa: SLF001  # a public name


class Message:
    """What a client returns: a record, or an error in place of one."""

    def __init__(self, offset: int, error: KafkaError | None = None) -> None:
        self._offset = offset
        self._error = error

    def topic(self) -> str:
        return PLACE.topic

    def partition(self) -> int:
        return PLACE.number

    def offset(self) -> int:
        return self._offset

    def error(self) -> KafkaError | None:
        return self._error

    def timestamp(self) -> tuple[int, int]:
        return 1, 5

    def key(self) -> bytes:
        return b"k"

    def value(self) -> None: ...

    def headers(self) -> None: ...


class Client:
    """A consumer that returns its messages one by one; an error of the client stands for its failure."""

    def __init__(self, results: Iterable[Message | KafkaError], bounds: tuple[int, int] | None) -> None:
        self._results = list(results)
        self._bounds = bounds

    def poll(self, _: float) -> Message | None:
        result = self._results.pop(0) if self._results else None
        if isinstance(result, KafkaError):
            raise KafkaException(result)
        return result

    def get_watermark_offsets(self, *_: object) -> tuple[int, int] | None:
        return self._bounds

    def consume(self, _: int, wait_s: float) -> list[Message]:
        message = self.poll(wait_s)
        return [] if message is None else [message]


def reader(
    monkeypatch: pytest.MonkeyPatch, *results: Message | KafkaError, bounds: tuple[int, int] | None = (0, 9)
) -> KafkaPartitionReader:
    monkeypatch.setattr(consumer_thread, "create_consumer", lambda *_: cast("Any", Client(results, bounds)))
    return KafkaPartitionReader({}, "test")


def test_ends_and_lost_positions_take_the_place_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    read = reader(monkeypatch, Message(7), Message(8, END), Message(0, LOST))
    records = [record for piece in read.read(wait=False) for record in piece]
    assert records == [Record(*PLACE, 7, 5, b"k", None)]
    assert (read.ended(), read.lost()) == ({PLACE: 8}, {PLACE: 9})


def test_a_lost_position_is_found_again_when_the_end_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    read = reader(monkeypatch, Message(0, LOST), bounds=None)
    with pytest.raises(KafkaException):
        list(read.read(wait=False))
    assert read.lost() == {}


def test_an_end_behind_records_that_were_lost_with_a_failure_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = KafkaError(KafkaError._STATE)  # noqa: SLF001  # a public name
    read = reader(monkeypatch, Message(7), Message(8, END), failure)
    with pytest.raises(KafkaException):
        list(read.read(wait=False))
    assert list(read.read(wait=False)) == []
    assert read.ended() == {}


def test_a_fatal_error_ends_the_reader_and_any_other_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    passing, fatal = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), KafkaError(KafkaError.UNKNOWN, fatal=True)
    read = reader(monkeypatch, Message(0, passing), Message(0, fatal))
    with pytest.raises(ConsumerFailedError):
        list(read.read(wait=False))
    assert caplog.messages == ["kafka"]
