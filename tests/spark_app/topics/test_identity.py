"""The checks of the topics before the job starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from contracts.errors import TopicConfigError
from contracts.settings import KafkaSettings
from services.runtime.kafka.admin import KafkaAdmin
from services.tools.broker.readiness import wait_until
from services.tools.topics.__main__ import make
from services.tools.topics.settings import TopicsSettings
from spark_app.errors import BrokerUnreachableError, PartitionCountError, TopicMissingError
from spark_app.run.session import slots
from spark_app.topics.identity import identify
from tests import everything
from tests.deadline import DEADLINE_S
from tests.spark_app.running import PARTITIONS, Topics

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker


def await_listed(admin: AdminClient, names: list[str]) -> None:
    """Wait until the broker lists these topics: it does so a moment after it made them."""
    wait_until(lambda: admin.list_topics(timeout=DEADLINE_S).topics.keys() >= set(names), f"{names} listed", DEADLINE_S)


def listed_partitions(admin: AdminClient, name: str) -> int:
    """Return the number of partitions that the broker lists; 0 for a topic that it does not list yet."""
    metadata = admin.list_topics(timeout=DEADLINE_S).topics.get(name)
    return len(metadata.partitions) if metadata else 0


def test_no_broker_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.runtime.kafka.admin.ANSWER_S", 0.5)
    with pytest.raises(BrokerUnreachableError, match=r"no broker answers at 127\.0\.0\.1:1 .*: start it"):
        identify(KafkaSettings(kafka="127.0.0.1:1"), everything.app)


@pytest.mark.kafka
class TestOnABroker:
    """Each on topics of its own."""

    @pytest.fixture(autouse=True)
    def _prefix(self, topics_prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EVERYTHING_PREFIX", topics_prefix)
        monkeypatch.setenv("EVERYTHING_REPLAY", "0")

    def test_topics_are_known_by_name_id_and_partitions(self, broker: EmbeddedBroker) -> None:
        application = everything.application()
        Topics(broker.bootstrap, application)
        events, feedback = identify(KafkaSettings(kafka=broker.bootstrap), application)
        assert (events.name, feedback.name) == (application.topics.events, application.topics.feedback)
        assert events.id != feedback.id
        assert (events.partitions, feedback.partitions) == (PARTITIONS, PARTITIONS)

    @pytest.mark.parametrize("missing", ["events", "feedback", "snapshots", "dead_letters"])
    def test_a_missing_topic_is_reported(self, broker: EmbeddedBroker, missing: str) -> None:
        application = everything.application()
        name = getattr(application.topics, missing)
        there = [topic for topic in application.topics.catalogue(application.state) if topic.name != name]
        settings = TopicsSettings(application="", kafka=broker.bootstrap)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        await_listed(admin, make(KafkaAdmin({"bootstrap.servers": broker.bootstrap}, "test"), there, settings))
        with pytest.raises(TopicMissingError, match=f"topic '{name}' is not on .*: run `stateloop topics`"):
            identify(KafkaSettings(kafka=broker.bootstrap), application)

    def test_a_topic_that_devices_stamp_themselves_is_refused(self, broker: EmbeddedBroker) -> None:
        application = everything.application()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        events, count = application.topics.events, application.topics.partitions
        admin.create_topics([NewTopic(events, count, 1)])[events].result()
        others = [t for t in application.topics.catalogue(application.state) if t.name != events]
        made = make(
            KafkaAdmin({"bootstrap.servers": broker.bootstrap}, "test"),
            others,
            TopicsSettings(application="", kafka=broker.bootstrap),
        )
        await_listed(admin, [*made, events])
        with pytest.raises(TopicConfigError, match=r"message\.timestamp\.type=CreateTime, not LogAppendTime"):
            identify(KafkaSettings(kafka=broker.bootstrap), application)

    def test_topics_of_different_numbers_of_partitions_are_refused(self, broker: EmbeddedBroker) -> None:
        application = everything.application()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        Topics(broker.bootstrap, application)
        name, more = application.topics.snapshots, PARTITIONS + 1
        admin.create_partitions([NewPartitions(name, more)])[name].result(30)
        wait_until(lambda: listed_partitions(admin, name) == more, "they are listed", DEADLINE_S)
        with pytest.raises(PartitionCountError, match=rf"{name} has {more}: .* --partitions {more}`") as error:
            identify(KafkaSettings(kafka=broker.bootstrap), application)
        assert error.value.found == {
            application.topics.events: PARTITIONS,
            application.topics.feedback: PARTITIONS,
            name: more,
        }


@pytest.mark.parametrize(("deduplicate", "expected"), [(True, 2 * 3 + 2 * 4), (False, 2 * 3 + 4)])
def test_there_is_a_slot_for_every_task_at_once(expected: int, *, deduplicate: bool) -> None:
    assert slots(everything.application(deduplicate=deduplicate), 3, 4) == expected
