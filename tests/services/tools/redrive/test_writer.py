"""A record that is sent again is there in the end, or an error is raised."""

from __future__ import annotations

import pytest

from services.runtime.errors import DeliveryFailedError
from services.runtime.kafka.interfaces import Output
from services.tools.redrive.errors import WriteError
from services.tools.redrive.writer import LARGEST, KafkaWriter

LARGEST_EVENT = 10 * 1024 * 1024
REFUSED = DeliveryFailedError("events", "MSG_SIZE_TOO_LARGE", "too large")


class Producer:
    """A producer that may fail. Implements BlockingProducer."""

    def __init__(self, *, left: int = 0, error: DeliveryFailedError | None = None) -> None:
        self.written: list[Output] = []
        self._left = left
        self._error = error

    def send(self, _: object) -> list[int]:
        raise NotImplementedError

    def enqueue(self, output: Output) -> None:
        if self._error:
            raise self._error
        self.written.append(output)

    def flush(self, _: float | None = None) -> int:
        if self._error:
            raise self._error
        return self._left


def test_a_record_is_written_with_where_it_was_first() -> None:
    producer = Producer()
    ours = KafkaWriter(producer)
    ours.write("events", b"d1", b"a", 7, {"origin": b"events/0/7"})
    ours.close()
    assert producer.written == [Output("events", b"d1", b"a", timestamp_ms=7, headers=(("origin", b"events/0/7"),))]


def test_a_refused_record_is_reported() -> None:
    ours = KafkaWriter(Producer(error=REFUSED))
    with pytest.raises(WriteError, match=r"events \(MSG_SIZE_TOO_LARGE: too large\)"):
        ours.write("events", b"d1", b"a", 7, {})
    with pytest.raises(WriteError, match="MSG_SIZE_TOO_LARGE"):
        ours.close()


def test_an_unconfirmed_record_is_reported() -> None:
    with pytest.raises(WriteError, match="3 records were not confirmed"):
        KafkaWriter(Producer(left=3)).close()


def test_a_large_record_is_written() -> None:
    """The client's own limit is a tenth of what a broker may be configured to take."""
    assert LARGEST["message.max.bytes"] > LARGEST_EVENT
