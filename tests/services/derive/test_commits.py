"""Commits while the broker is away: the client waits for a whole session, and the worker does not."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from contracts.records.record import Record, timestamp_ms
from services.derive import commits
from services.derive.commits import Commits
from services.derive.kafka import RealKafka
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

OFFSETS = [TopicPartition("snapshots", 0, 7)]
CLIENT = {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}


class Away:
    """A consumer whose broker is away until the test lets go."""

    def __init__(self) -> None:
        self.back = threading.Event()
        self.begun = threading.Event()
        self.error: Exception | None = None
        self.closed = False

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert (offsets, asynchronous) == (OFFSETS, False)
        self.begun.set()
        assert self.back.wait(DEADLINE_S)
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Away]:
    monkeypatch.setattr(commits, "STOP_S", 0.2)
    away = Away()
    yield away
    away.back.set()


def committed(consumer: Away) -> Commits:
    """They commit, and are never to stop."""
    return Commits(consumer, lambda: False)  # type: ignore[arg-type]


def test_a_commit_is_awaited_until_the_worker_stops(consumer: Away) -> None:
    results: list[bool] = []
    waiting = threading.Thread(target=lambda: results.append(committed(consumer).commit(OFFSETS)))
    waiting.start()
    assert consumer.begun.wait(DEADLINE_S)
    assert not results
    consumer.back.set()
    waiting.join(DEADLINE_S)
    assert results == [True]


def test_a_refused_commit_is_reported(consumer: Away, caplog: pytest.LogCaptureFixture) -> None:
    consumer.back.set()
    consumer.error = KafkaException(KafkaError(KafkaError.UNKNOWN_MEMBER_ID))
    ours = committed(consumer)
    assert not ours.commit(OFFSETS)
    assert not ours.undone
    assert "not committed" in caplog.text


def test_an_unexpected_error_is_not_taken_for_a_commit(consumer: Away) -> None:
    consumer.back.set()
    consumer.error = RuntimeError("Consumer closed")
    with pytest.raises(RuntimeError, match="closed"):
        committed(consumer).commit(OFFSETS)


def test_a_stopping_worker_waits_for_an_answer_that_comes_soon(consumer: Away) -> None:
    def stopping() -> bool:
        consumer.back.set()
        return True

    assert Commits(consumer, stopping).commit(OFFSETS)  # type: ignore[arg-type]


def test_a_worker_that_is_to_stop_waits_for_no_broker_that_is_away(consumer: Away) -> None:
    """Nor does it leave the group then, which would wait for the same."""
    kafka = RealKafka(CLIENT, "derive", "snapshots", 1, lambda: True)
    kafka._commits = Commits(consumer, lambda: True)  # type: ignore[arg-type]  # noqa: SLF001
    kafka._consumer = consumer  # type: ignore[assignment]  # noqa: SLF001
    assert kafka.settle([Record("snapshots", 0, 6, timestamp_ms(datetime.now(UTC)), b"k", b"v")], ())
    kafka.close()
    assert not consumer.closed
    assert not consumer.back.is_set(), "it ended before the broker was back"
    consumer.back.set()
    other = RealKafka(CLIENT, "derive", "snapshots", 1, lambda: True)
    other._consumer = consumer  # type: ignore[assignment]  # noqa: SLF001
    other.close()
    assert consumer.closed
