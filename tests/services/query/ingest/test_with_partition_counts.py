from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import Mock

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from contracts.model.named_state import NamedState
from services.query.errors import NoBrokerError, NoTopicError
from services.query.ingest import partition_counts
from services.query.ingest.partition_counts import with_partition_counts
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from tests.services.broker.embedded import EmbeddedBroker


def _state(topic: str) -> dict[str, NamedState]:
    return {"cars": NamedState(name="cars", topic=topic, schema={}, partitions=4)}


@pytest.mark.kafka
def test_number_of_partitions_is_the_brokers(broker: EmbeddedBroker, topics_prefix: str) -> None:
    topic = f"{topics_prefix}cars"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 7, 1)])[topic].result(DEADLINE_S)
    found = with_partition_counts(_state(topic), {"bootstrap.servers": broker.bootstrap})
    assert found
    assert found["cars"].partitions == 7


@pytest.mark.parametrize(("layout", "used"), [(4, 4), (7, 7), (9, 7), (0, 7)])
def test_partitions_that_are_being_added_are_not_used_yet(
    monkeypatch: pytest.MonkeyPatch, layout: int, used: int
) -> None:
    """They are when the layout topic has them too; it may not be visible to the service."""
    listed = {"cars": Listed({}, tuple(range(7)))} | ({"answers": Listed({}, tuple(range(layout)))} if layout else {})
    admin = Mock()
    admin.list_topics.return_value = Listed(listed)
    monkeypatch.setattr(partition_counts, "create_admin_client", lambda *_: admin)
    state = NamedState(name="cars", topic="cars", schema={}, partitions=1, layout_topic="answers")
    found = with_partition_counts({"cars": state}, {"bootstrap.servers": "nowhere"})
    assert found
    assert found["cars"].partitions == used


@pytest.mark.kafka
def test_missing_topic_is_said(broker: EmbeddedBroker, topics_prefix: str) -> None:
    with pytest.raises(NoTopicError, match=r"stateloop topics"):
        with_partition_counts(_state(f"{topics_prefix}none"), {"bootstrap.servers": broker.bootstrap})


class Listed(NamedTuple):
    """The answers of an admin client."""

    topics: dict[str, Listed]
    partitions: tuple[int, ...] = ()


@pytest.mark.parametrize(("answers", "looked"), [((0, 0, 7), 3), ((7,), 1), ((None, None, 0, 7), 4)])
def test_a_topic_that_is_just_being_made_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[int | None, ...], looked: int
) -> None:
    listener = [Listed({} if count is None else {"cars": Listed({}, tuple(range(count)))}) for count in answers]
    admin = Mock()
    admin.list_topics.side_effect = listener
    monkeypatch.setattr(partition_counts, "RETRY_S", 0.0)
    monkeypatch.setattr(partition_counts, "create_admin_client", lambda *_: admin)
    found = with_partition_counts(_state("cars"), {"bootstrap.servers": "nowhere"})
    assert found
    assert (found["cars"].partitions, admin.list_topics.call_count) == (7, looked)


@pytest.mark.parametrize(("listed", "patience"), [({"cars": Listed({})}, "BROKER_TIMEOUT_S"), ({}, "TOPIC_TIMEOUT_S")])
def test_a_topic_without_partitions_is_said_in_the_end(
    monkeypatch: pytest.MonkeyPatch, listed: dict[str, Listed], patience: str
) -> None:
    admin = Mock()
    admin.list_topics.return_value = Listed(listed)
    monkeypatch.setattr(partition_counts, patience, 0.0)
    monkeypatch.setattr(partition_counts, "create_admin_client", lambda *_: admin)
    with pytest.raises(NoTopicError, match="cars"):
        with_partition_counts(_state("cars"), {"bootstrap.servers": "nowhere"})


def test_who_shall_stop_does_not_wait_for_a_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_counts, "RESPONSE_TIMEOUT_S", 0.1)
    listener = iter((False, False, True))
    assert with_partition_counts(_state("cars"), {"bootstrap.servers": "127.0.0.1:1"}, lambda: next(listener)) is None


def test_missing_broker_is_said_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_counts, "BROKER_TIMEOUT_S", 0.0)
    monkeypatch.setattr(partition_counts, "RESPONSE_TIMEOUT_S", 0.2)
    with pytest.raises(NoBrokerError, match=r"no broker answers at 127\.0\.0\.1:1 "):
        with_partition_counts(_state("cars"), {"bootstrap.servers": "127.0.0.1:1"})
