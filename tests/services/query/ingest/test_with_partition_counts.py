from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from contracts.model.named_state import NamedState
from services.query.errors import NoTopicError
from services.query.ingest import partition_counts
from services.query.ingest.partition_counts import growing_states, with_partition_counts
from services.runtime.errors import KafkaRequestError, NoBrokerError
from services.runtime.kafka.admin import KafkaAdmin
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker

NOWHERE = "127.0.0.1:1"


def _state(topic: str) -> dict[str, NamedState]:
    return {"cars": NamedState(name="cars", topic=topic, schema={}, partitions=4)}


def _admin(kafka: str) -> KafkaAdmin:
    return KafkaAdmin({"bootstrap.servers": kafka}, "test")


@pytest.mark.kafka
def test_the_number_of_partitions_is_read_from_the_broker(broker: EmbeddedBroker, topics_prefix: str) -> None:
    topic = f"{topics_prefix}cars"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 7, 1)])[topic].result(DEADLINE_S)
    found = with_partition_counts(_state(topic), _admin(broker.bootstrap), broker.bootstrap)
    assert found
    assert found["cars"].partitions == 7


@pytest.mark.parametrize(
    ("counts", "growing"),
    [
        ({"cars": 4, "answers": 4, "tables": 2}, set()),
        ({"cars": 7, "answers": 4, "tables": 2}, {"cars"}),
        ({"cars": 4, "answers": 7, "tables": 2}, set()),
        ({"tables": 2}, {"cars"}),
    ],
)
def test_states_are_growing_while_their_topics_have_more_partitions(counts: dict[str, int], growing: set[str]) -> None:
    """The layout topic gets its partitions last. A topic of events that others share may have had them before."""
    admin = Mock()
    admin.partition_counts.return_value = counts
    states = [
        NamedState(name="cars", topic="cars", schema={}, partitions=4, layout_topic="answers"),
        NamedState(name="tables", topic="tables", schema={}, partitions=2),
    ]
    assert growing_states(states, admin) == growing
    admin.partition_counts.side_effect = KafkaRequestError("list topics", "_TIMED_OUT", "no broker")
    assert growing_states(states, admin) == {"cars", "tables"}, "what is not known may be growing"


@pytest.mark.parametrize(("layout", "used"), [(4, 4), (7, 7), (9, 7), (0, 7)])
def test_partitions_that_are_being_added_are_not_used_yet(
    layout: int, used: int, caplog: pytest.LogCaptureFixture
) -> None:
    """They are used once the layout topic has them too; the service may not see that topic."""
    admin = Mock()
    admin.partition_counts.return_value = {"cars": 7} | ({"answers": layout} if layout else {})
    state = NamedState(name="cars", topic="cars", schema={}, partitions=1, layout_topic="answers")
    found = with_partition_counts({"cars": state}, admin, NOWHERE)
    assert found
    assert found["cars"].partitions == used
    assert ("a topic is not listed" in caplog.text) == (not layout)


@pytest.mark.kafka
def test_a_missing_topic_is_reported(broker: EmbeddedBroker, topics_prefix: str) -> None:
    with pytest.raises(NoTopicError, match=r"stateloop topics"):
        with_partition_counts(_state(f"{topics_prefix}none"), _admin(broker.bootstrap), broker.bootstrap)


@pytest.mark.parametrize(("counts", "requests"), [((0, 0, 7), 3), ((7,), 1), ((None, None, 0, 7), 4)])
def test_a_topic_that_is_being_created_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, counts: tuple[int | None, ...], requests: int
) -> None:
    admin = Mock()
    admin.partition_counts.side_effect = [{} if count is None else {"cars": count} for count in counts]
    monkeypatch.setattr(partition_counts, "RETRY_S", 0.0)
    found = with_partition_counts(_state("cars"), admin, NOWHERE)
    assert found
    assert (found["cars"].partitions, admin.partition_counts.call_count) == (7, requests)


@pytest.mark.parametrize(("listed", "patience"), [({"cars": 0}, "BROKER_TIMEOUT_S"), ({}, "TOPIC_TIMEOUT_S")])
def test_a_topic_without_partitions_is_reported_after_the_timeout(
    monkeypatch: pytest.MonkeyPatch, listed: dict[str, int], patience: str
) -> None:
    admin = Mock()
    admin.partition_counts.return_value = listed
    monkeypatch.setattr(partition_counts, patience, 0.0)
    with pytest.raises(NoTopicError, match="cars"):
        with_partition_counts(_state("cars"), admin, NOWHERE)


def test_a_stopping_service_does_not_wait_for_a_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_counts, "RESPONSE_TIMEOUT_S", 0.1)
    stopping = iter((False, False, True))
    assert with_partition_counts(_state("cars"), _admin(NOWHERE), NOWHERE, lambda: next(stopping)) is None


def test_a_missing_broker_is_reported_after_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_counts, "BROKER_TIMEOUT_S", 0.0)
    monkeypatch.setattr(partition_counts, "RESPONSE_TIMEOUT_S", 0.2)
    with pytest.raises(NoBrokerError, match=r"no broker answers at 127\.0\.0\.1:1 "):
        with_partition_counts(_state("cars"), _admin(NOWHERE), NOWHERE)
