from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin import NewTopic as ClientTopic

from contracts.errors import TopicConfigError
from contracts.model.topics import Topics
from services.runtime.errors import KafkaRequestError, LoginRefusedError, NoBrokerError
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.broker_check import require_broker
from services.tools.broker.readiness import wait_until
from services.tools.topics.__main__ import make
from services.tools.topics.errors import TopicRefusedError, WrongPartitionsError, refused
from services.tools.topics.settings import TopicsSettings
from tests.deadline import DEADLINE_S
from tests.everything import Everything

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from contracts.model.topics import Topic
    from services.runtime.kafka.values import NewTopic
    from tests.services.tools.broker.embedded import EmbeddedBroker

CHECKOUT = Path(__file__).parents[4]
NOWHERE = "127.0.0.1:1"
SECRET = "hunter2"  # noqa: S105  # looked for where it must not be


def settings(kafka: str = NOWHERE, **own: object) -> TopicsSettings:
    return TopicsSettings.model_validate({"application": "", "kafka": kafka, "patience": "PT0S", **own})


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "services.tools.topics"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STATELOOP_")}
    return subprocess.run(command, cwd=CHECKOUT, env=clean | environment, capture_output=True, text=True, check=False)


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    return line


def listed(admin: AdminClient, awaited: set[str]) -> dict[str, int]:
    """The broker's topics with their partitions, once these are among them."""
    wait_until(lambda: awaited <= admin.list_topics(timeout=DEADLINE_S).topics.keys(), f"{awaited} listed", DEADLINE_S)
    return {name: len(topic.partitions) for name, topic in admin.list_topics(timeout=DEADLINE_S).topics.items()}


class LateAdmin:
    """A broker that lists a new topic only when it is asked for the third time. Implements a part of Admin."""

    def __init__(self) -> None:
        self.times = 0
        self.counts: dict[str, int] = {}

    def create(self, new: Collection[NewTopic]) -> Collection[str]:
        self.times = 0
        self.counts = {topic.name: topic.partitions for topic in new}
        return list(self.counts)

    def partition_counts(self) -> dict[str, int]:
        self.times += 1
        return self.counts if self.times >= 3 else {}


def test_the_broker_lists_the_topics_that_were_created() -> None:
    late: Any = LateAdmin()
    names = make(late, Topics().catalogue(Everything), settings())
    assert names
    assert late.partition_counts().keys() == set(names)
    assert late.times == 4, "the third time, and this one"


def create(broker: EmbeddedBroker, catalogue: Sequence[Topic], own: TopicsSettings) -> list[str]:
    return make(KafkaAdmin({"bootstrap.servers": broker.bootstrap}, "test"), catalogue, own)


@pytest.fixture
def admin(broker: EmbeddedBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.mark.kafka
def test_topics_are_made_once_and_a_wrong_partition_count_is_refused(
    broker: EmbeddedBroker, admin: AdminClient, topics_prefix: str
) -> None:
    catalogue = Topics(prefix=topics_prefix).catalogue(Everything)
    three = settings(broker.bootstrap, partitions=3)
    assert sorted(create(broker, catalogue, three)) == sorted(topic.name for topic in catalogue)
    assert create(broker, catalogue, three) == []
    resource = ConfigResource(ConfigResource.Type.TOPIC, catalogue[2].name)
    config = admin.describe_configs([resource])[resource].result()
    assert config["cleanup.policy"].value == "compact,delete"
    assert config["min.insync.replicas"].value == "1"
    with pytest.raises(WrongPartitionsError, match="STATELOOP_PARTITIONS=3"):
        create(broker, catalogue, settings(broker.bootstrap, partitions=4))


@pytest.mark.kafka
def test_the_number_of_partitions_is_the_applications_unless_set(
    broker: EmbeddedBroker, admin: AdminClient, topics_prefix: str
) -> None:
    five = Topics(prefix=topics_prefix, partitions=5).catalogue(Everything)
    create(broker, five, settings(broker.bootstrap))
    names = {topic.name for topic in five}
    assert {listed(admin, names)[name] for name in names} == {5}


@pytest.mark.kafka
def test_a_topic_that_is_older_than_a_longer_retention_is_reported_with_the_command_that_changes_it(
    broker: EmbeddedBroker, topics_prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    week, month = (Topics(prefix=topics_prefix, outage=timedelta(days=days)).catalogue(Everything) for days in (7, 30))
    own = settings(broker.bootstrap)
    create(broker, month, own)
    assert create(broker, month, own) == create(broker, week, own) == []
    assert capsys.readouterr().err == "", "a longer retention is no problem"
    change = month[0].shorter_retention(week[0].config(), broker.bootstrap)
    assert change
    KafkaAdmin({"bootstrap.servers": broker.bootstrap}, "test").alter(week[0].name, week[0].config())

    def reported() -> bool:
        create(broker, month, own)
        return f"warning: {change}" in capsys.readouterr().err

    wait_until(reported, "the broker applies the retention", DEADLINE_S)


@pytest.mark.kafka
def test_a_topic_that_devices_stamp_themselves_is_refused_and_fixed_by_the_command_of_the_error(
    broker: EmbeddedBroker, admin: AdminClient, topics_prefix: str
) -> None:
    """Kafka's own default: a device whose clock is ahead would be compared with itself."""
    catalogue = Topics(prefix=topics_prefix, partitions=1).catalogue(Everything)
    events = catalogue[0].name
    admin.create_topics([ClientTopic(events, 1, 1)])[events].result(30)
    listed(admin, {events})
    with pytest.raises(TopicConfigError, match=r"message\.timestamp\.type=CreateTime, not LogAppendTime") as differs:
        create(broker, catalogue, settings(broker.bootstrap))
    assert f"kafka-configs --bootstrap-server {broker.bootstrap} --alter" in str(differs.value)
    assert {name for name in listed(admin, {events}) if name.startswith(topics_prefix)} == {events}, "none was made"
    fixes = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in differs.value.wrong.items()
    ]
    changed = ConfigResource(ConfigResource.Type.TOPIC, events, incremental_configs=fixes)
    admin.incremental_alter_configs([changed])[changed].result(30)
    assert len(create(broker, catalogue, settings(broker.bootstrap))) == 3


@pytest.mark.kafka
def test_a_refusal_of_the_broker_is_one_line(broker: EmbeddedBroker, topics_prefix: str) -> None:
    environment = {"STATELOOP_APPLICATION": "tests.everything:app", "STATELOOP_KAFKA": broker.bootstrap}
    environment["EVERYTHING_PREFIX"] = topics_prefix
    assert "set STATELOOP_REPLICATION" in one_line(run(**environment, STATELOOP_REPLICATION="3"))


@pytest.mark.kafka
def test_a_refused_login_is_not_waited_for_nor_reported_as_a_missing_broker(broker: EmbeddedBroker) -> None:
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"} | {
        "sasl.username": "a",
        "sasl.password": SECRET,
    }
    with pytest.raises(LoginRefusedError, match="STATELOOP_KAFKA_OPTIONS") as refusal:
        require_broker(settings(broker.bootstrap, kafka_options=login), 3_600)
    assert SECRET not in str(refusal.value)


@pytest.mark.slow
def test_a_missing_broker_is_waited_for_visibly_and_not_for_ever() -> None:
    *waits, end = run(
        STATELOOP_APPLICATION="tests.everything:app", STATELOOP_KAFKA=NOWHERE, STATELOOP_PATIENCE="3"
    ).stderr.splitlines()
    assert waits, "the wait is reported"
    assert re.search(rf"waits for a broker at {NOWHERE}, for \d s more at the most \(.*refused", waits[0])
    assert f"no broker answers at {NOWHERE} within 3 s" in end


@pytest.mark.kafka
def test_one_copy_is_made_with_a_warning_unless_it_is_set(broker: EmbeddedBroker, topics_prefix: str) -> None:
    environment = {"STATELOOP_APPLICATION": "tests.everything:app", "STATELOOP_KAFKA": broker.bootstrap}
    quiet = run(**environment, EVERYTHING_PREFIX=f"{topics_prefix}a.", STATELOOP_REPLICATION="1")
    assert (quiet.returncode, quiet.stderr) == (0, "")
    warned = run(**environment, EVERYTHING_PREFIX=f"{topics_prefix}b.")
    assert warned.returncode == 0
    assert "set STATELOOP_REPLICATION=3 (and STATELOOP_MIN_INSYNC_REPLICAS=2)" in warned.stderr
    again = run(**environment, EVERYTHING_PREFIX=f"{topics_prefix}b.")
    assert (again.stdout, again.stderr) == ("all topics are there\n", "")


@pytest.mark.parametrize(("replication", "insync"), [(1, 1), (2, 1), (3, 2), (5, 2)])
def test_a_record_is_in_two_replicas_where_a_third_may_be_away(replication: int, insync: int) -> None:
    assert settings(replication=replication).insync == insync


def test_more_replicas_in_sync_than_there_are_is_refused() -> None:
    assert "must not be more than STATELOOP_REPLICATION" in one_line(
        run(STATELOOP_APPLICATION="tests.everything:app", STATELOOP_MIN_INSYNC_REPLICAS="2")
    )


def test_missing_rights_are_not_reported_as_a_missing_broker() -> None:
    denied = refused("events", NOWHERE, KafkaRequestError("", "TOPIC_AUTHORIZATION_FAILED", "not authorized"))
    assert isinstance(denied, TopicRefusedError)
    assert "grant this user Create, Describe and DescribeConfigs" in str(denied)
    assert isinstance(refused("events", NOWHERE, KafkaRequestError("", "_TIMED_OUT", "timed out")), NoBrokerError)


def test_missing_and_unreadable_settings_are_one_line() -> None:
    assert "STATELOOP_APPLICATION: Field required" in one_line(run())
    assert "STATELOOP_KAFKA_OPTIONS: write it as JSON" in one_line(run(STATELOOP_KAFKA_OPTIONS="{"))
