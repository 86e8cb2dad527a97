"""Lookups of offsets at brokers that do not answer, by a clock that only their calls advance."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from services.runtime.kafka import offsets
from services.runtime.kafka.offsets import PAUSE_S, TRY_S, lookup
from services.runtime.kafka.values import LATEST, Partition
from tests.clock import Clock

PLACE = Partition("snapshots", 0)


class SilentConsumer:
    """A consumer whose calls fail until `answers_at`: lists in the end, and lookups after this share of their time."""

    def __init__(self, clock: Clock, *, share: float = 1.0, answers_at: float = float("inf")) -> None:
        self._clock = clock
        self._share = share
        self._answers_at = answers_at

    def offsets_for_times(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        if self._clock.now < self._answers_at:
            self._fail(timeout * self._share)
        return [TopicPartition(one.topic, one.partition, 7) for one in partitions]

    def list_topics(self, *, timeout: float) -> None:
        self._fail(timeout)

    def _fail(self, timeout: float) -> None:
        assert timeout >= 0, "less than 0 waits for ever"
        self._clock.now += timeout
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001  # the client's name


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()

    def sleep(seconds: float) -> None:
        made.now += seconds

    monkeypatch.setattr(offsets, "time", SimpleNamespace(monotonic=made, sleep=sleep))
    return made


@pytest.mark.parametrize("share", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("within_s", [PAUSE_S / 2, 2.0, TRY_S, 3.5 * TRY_S])
def test_all_attempts_together_take_no_longer_than_the_time(clock: Clock, within_s: float, share: float) -> None:
    consumer: Any = SilentConsumer(clock, share=share)
    with pytest.raises(KafkaException, match="_TIMED_OUT"):
        lookup(consumer, {PLACE: LATEST}, within_s)
    assert within_s - PAUSE_S <= clock.now <= within_s + 1e-9


def test_a_broker_that_answers_within_the_time_is_asked_again(clock: Clock) -> None:
    consumer: Any = SilentConsumer(clock, answers_at=2 * TRY_S)
    assert lookup(consumer, {PLACE: LATEST}, 3 * TRY_S) == {PLACE: 7}
