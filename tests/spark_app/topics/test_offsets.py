"""The offsets of topics, while a broker moves their partitions."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from contracts.settings import KafkaSettings
from spark_app.errors import BrokerUnreachableError
from spark_app.topics.identity import TopicIdentity
from spark_app.topics.offsets import TopicOffsets


class Answers:
    """An admin client that responds with these results: an offset, or the code of an error."""

    def __init__(self, *results: int) -> None:
        self.results = list(results)

    def list_offsets(self, partitions: dict[TopicPartition, OffsetSpec], **_: float) -> dict[TopicPartition, Any]:
        result = self.results.pop(0)
        future: Future[Any] = Future()
        if result < 0 or result == KafkaError.NOT_LEADER_FOR_PARTITION:
            future.set_exception(KafkaException(KafkaError(result)))
        else:
            future.set_result(SimpleNamespace(offset=result))
        return dict.fromkeys(partitions, future)


def test_offsets_of_a_partition_that_is_getting_its_leader_are_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = Answers(KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.NOT_LEADER_FOR_PARTITION, 7)
    monkeypatch.setattr("spark_app.topics.offsets.create_admin_client", lambda *_: admin)
    found = TopicOffsets(KafkaSettings(kafka="nowhere:1"), [TopicIdentity("events", "", 1)])
    assert found.ends() == {("events", 0): 7}
    admin.results.append(KafkaError._TRANSPORT)  # noqa: SLF001  # the name that the library gives it
    with pytest.raises(BrokerUnreachableError):
        found.ends()
