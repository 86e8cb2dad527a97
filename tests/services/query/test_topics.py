from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from contracts.named import NamedState
from services.query import topics
from services.query.errors import NoBrokerError, NoTopicError
from services.query.topics import sized

if TYPE_CHECKING:
    from tests.services.broker.embedded import EmbeddedBroker

DEADLINE_S = 60


def _state(topic: str) -> dict[str, NamedState]:
    return {"cars": NamedState(name="cars", topic=topic, schema={}, partitions=4)}


@pytest.mark.kafka
def test_number_of_partitions_is_the_brokers(broker: EmbeddedBroker, topics_prefix: str) -> None:
    topic = f"{topics_prefix}cars"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 7, 1)])[topic].result(DEADLINE_S)
    assert sized(_state(topic), {"bootstrap.servers": broker.bootstrap})["cars"].partitions == 7


@pytest.mark.kafka
def test_missing_topic_is_said(broker: EmbeddedBroker, topics_prefix: str) -> None:
    with pytest.raises(NoTopicError, match=r"python -m services\.topics"):
        sized(_state(f"{topics_prefix}none"), {"bootstrap.servers": broker.bootstrap})


def test_missing_broker_is_said_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "PATIENCE_S", 0.0)
    monkeypatch.setattr(topics, "ANSWER_S", 0.2)
    with pytest.raises(NoBrokerError, match=r"no broker answers at 127\.0\.0\.1:1 "):
        sized(_state("cars"), {"bootstrap.servers": "127.0.0.1:1"})
