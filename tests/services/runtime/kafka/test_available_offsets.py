"""The offsets of partitions of which some have no leader, or one that does not answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from services.runtime.kafka.offsets import lookup_available
from services.runtime.kafka.values import LATEST, Partition

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

WITHIN_S = 4.0
LEADERS = {0: 1, 1: 2, 2: 1, 3: -1}
"""The number of the broker that leads each partition."""
PLACES = dict.fromkeys([Partition("flights", number) for number in LEADERS] + [Partition("gone", 0)], LATEST)


class Brokers:
    """The brokers, as a consumer reaches them: the frozen ones answer no request for offsets."""

    def __init__(self, *frozen: int, lists: int = 0) -> None:
        self._frozen = frozen
        self._unanswered = lists
        """The number of requests for the list of topics that a frozen broker receives."""
        self.waited_s = 0.0

    def list_topics(self, *, timeout: float) -> Any:
        if self._unanswered:
            self._unanswered -= 1
            self.waited_s += timeout
            raise KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT))
        partitions = {number: SimpleNamespace(leader=leader) for number, leader in LEADERS.items()}
        return SimpleNamespace(topics={"flights": SimpleNamespace(partitions=partitions)})

    def offsets_for_times(self, partitions: list[TopicPartition], timeout: float) -> list[Any]:
        if any(LEADERS[one.partition] in {-1, *self._frozen} for one in partitions):
            self.waited_s += timeout
            raise KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT))
        return [SimpleNamespace(topic=one.topic, partition=one.partition, offset=7, error=None) for one in partitions]


@pytest.mark.parametrize(("frozen", "found"), [((), {0, 1, 2}), ((2,), {0, 2}), ((1,), {1})])
def test_partitions_wait_for_no_leader_of_others(frozen: tuple[int, ...], found: set[int]) -> None:
    consumer = cast("Any", Brokers(*frozen))
    assert lookup_available(consumer, PLACES, WITHIN_S) == {Partition("flights", number): 7 for number in found}


def test_no_leader_that_answers_is_an_error() -> None:
    with pytest.raises(KafkaException):
        lookup_available(cast("Any", Brokers(1, 2)), PLACES, WITHIN_S)


def test_a_second_broker_lists_the_topics_if_the_first_one_does_not_answer() -> None:
    brokers = Brokers(lists=1)
    assert len(lookup_available(cast("Any", brokers), PLACES, WITHIN_S)) == 3
    assert brokers.waited_s < WITHIN_S
    with pytest.raises(KafkaException):
        lookup_available(cast("Any", Brokers(lists=2)), PLACES, WITHIN_S)
