import uuid

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from contracts.topics import Topics
from services.topics.__main__ import WrongPartitions, make
from services.topics.settings import Settings
from tests.everything import Everything
from tests.services.broker.embedded import EmbeddedBroker


def test_the_catalogue_keeps_inputs_for_an_outage_and_snapshots_by_key() -> None:
    events, feedback, snapshots, letters = Topics().catalogue(Everything)
    assert {topic.name for topic in (events, feedback, snapshots, letters)} == {
        "events", "feedback", "snapshots", "dead_letters"
    }  # fmt: skip
    assert events.config()["message.timestamp.type"] == "LogAppendTime"
    assert events.config()["retention.ms"] == str(7 * 24 * 3600 * 1000)
    assert snapshots.config()["cleanup.policy"] == "compact,delete"


def test_a_replay_carries_its_own_times_and_is_not_dropped_for_its_age() -> None:
    events, feedback, *_ = Topics(replay=True).catalogue(Everything)
    for topic in (events, feedback):
        assert (topic.config()["message.timestamp.type"], topic.config()["retention.ms"]) == ("CreateTime", "-1")


@pytest.mark.kafka
def test_topics_are_made_once_and_a_wrong_partition_count_is_refused(broker: EmbeddedBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    catalogue = Topics(prefix=f"{uuid.uuid4().hex}.").catalogue(Everything)
    settings = Settings(application="", kafka=broker.bootstrap, partitions=3)
    assert sorted(make(admin, catalogue, settings)) == sorted(topic.name for topic in catalogue)
    assert make(admin, catalogue, settings) == []
    resource = ConfigResource(ConfigResource.Type.TOPIC, catalogue[2].name)
    config = admin.describe_configs([resource])[resource].result()
    assert config["cleanup.policy"].value == "compact,delete"
    with pytest.raises(WrongPartitions, match="STATELOOP_PARTITIONS=3"):
        make(admin, catalogue, Settings(application="", kafka=broker.bootstrap, partitions=4))
