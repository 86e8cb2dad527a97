from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel

from contracts import DeclarationError, Derived, QueryOptions, Raw, Table, Webhook
from contracts.errors import TopicConfigError
from contracts.model.topics import Topics
from examples.weather.application import weather
from tests.clicks import application
from tests.everything import Everything

if TYPE_CHECKING:
    from collections.abc import Callable


def test_the_catalogue_keeps_inputs_for_an_outage_and_snapshots_by_key() -> None:
    events, feedback, snapshots, dead_letters = Topics().catalogue(Everything)
    assert {topic.name for topic in (events, feedback, snapshots, dead_letters)} == {
        "events", "feedback", "snapshots", "dead_letters"
    }  # fmt: skip
    assert events.config()["message.timestamp.type"] == "LogAppendTime"
    assert events.config()["retention.ms"] == str(7 * 24 * 3600 * 1000)
    assert snapshots.config()["cleanup.policy"] == "compact,delete"


def test_a_replay_carries_its_own_times_and_is_not_dropped_for_its_age() -> None:
    events, feedback, *_ = Topics(replay=True).catalogue(Everything)
    for topic in (events, feedback):
        assert (topic.config()["message.timestamp.type"], topic.config()["retention.ms"]) == ("CreateTime", "-1")


def test_all_topics_have_the_same_number_of_partitions() -> None:
    assert {topic.partitions for topic in Topics().catalogue(Everything)} == {4}
    assert {topic.partitions for topic in Topics(partitions=7).catalogue(Everything)} == {7}


def test_a_topic_that_keeps_its_records_longer_is_as_good() -> None:
    for topic in Topics().catalogue(Everything):
        topic.require(topic.config() | {"retention.ms": "-1"}, "kafka:9092")


@pytest.mark.parametrize(
    ("declared", "found", "is_shorter"),
    [
        (Topics(), {"retention.ms": "60000"}, True),
        (Topics(), {"retention.ms": str(7 * 24 * 3600 * 1000)}, False),
        (Topics(), {"retention.ms": "-1"}, False),
        (Topics(), {}, False),
        (Topics(replay=True), {"retention.ms": str(7 * 24 * 3600 * 1000)}, True),
        (Topics(replay=True), {"retention.ms": "-1"}, False),
    ],
)
def test_a_topic_that_deletes_records_too_soon_is_named(
    declared: Topics, found: dict[str, str], *, is_shorter: bool
) -> None:
    events = declared.catalogue(Everything)[0]
    error = events.shorter_retention(events.config() | {"retention.ms": "-1"} | found, "kafka:9092")
    assert (error is not None) == is_shorter
    if error is not None:
        wanted = events.config()["retention.ms"]
        assert f"topic 'events' has retention.ms={found['retention.ms']}, not {wanted}: run kafka-configs" in str(error)
        assert error.wrong == {"retention.ms": wanted}


def test_a_compacted_topic_deletes_nothing_by_its_retention() -> None:
    table = replace(Topics().catalogue(Everything)[0], cleanup="compact")
    assert table.shorter_retention({"retention.ms": "60000"}, "kafka:9092") is None


def test_the_order_of_a_list_has_no_meaning() -> None:
    _, _, snapshots, _ = Topics().catalogue(Everything)
    snapshots.require(snapshots.config() | {"cleanup.policy": "delete, compact"}, "kafka:9092")


def test_a_topic_of_another_configuration_is_refused_with_the_command_that_fixes_it() -> None:
    _, _, snapshots, _ = Topics(prefix="a.").catalogue(Everything)
    config = {"message.timestamp.type": "CreateTime", "cleanup.policy": "delete"}
    with pytest.raises(TopicConfigError) as differs:
        snapshots.require(config, "kafka:9092")
    assert str(differs.value) == (
        "topic 'a.snapshots' has message.timestamp.type=CreateTime, not LogAppendTime and cleanup.policy=delete, "
        "not compact,delete: run kafka-configs --bootstrap-server kafka:9092 --alter "
        "--entity-type topics --entity-name a.snapshots --add-config "
        "'message.timestamp.type=LogAppendTime,cleanup.policy=[compact,delete]' (the records in it stay as they are), "
        "or delete it if its records are of no use. If other applications use it, declare Topics(replay=…) and "
        "Application(raw=…) as they do"
    )


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        (QueryOptions(), timedelta(days=1, hours=1, minutes=10)),
        (QueryOptions(remember=timedelta(days=30)), timedelta(days=30, hours=1, minutes=10)),
        (QueryOptions(remember=timedelta(0)), timedelta(days=1)),
    ],
)
def test_snapshots_of_closed_windows_are_kept_while_they_can_be_read(query: QueryOptions, kept: timedelta) -> None:
    topics = {topic.model: topic for topic in application(query=query).catalogue()}
    assert topics["snapshot"].retention == kept
    assert topics["event"].key == "any"


def test_closed_windows_of_a_device_are_not_kept() -> None:
    query = QueryOptions(remember=timedelta(days=30))
    _, _, snapshots, _ = Topics().catalogue(Everything, query)
    assert snapshots.retention == timedelta(days=1)


def test_the_records_of_alerts_wait_for_their_webhook_and_are_not_compacted() -> None:
    with_webhook, without = (
        next(topic for topic in weather(webhook=webhook).catalogue() if topic.model == "alerts")
        for webhook in (Webhook("pager"), None)
    )
    week = str(7 * 24 * 3600 * 1000)
    assert with_webhook.config()["min.compaction.lag.ms"] == week
    assert with_webhook.retention >= timedelta(days=7)
    assert "min.compaction.lag.ms" not in without.config()
    without.require({"cleanup.policy": "delete,compact", "message.timestamp.type": "LogAppendTime"}, "kafka:9092")
    config = with_webhook.config() | {"min.compaction.lag.ms": "0"}
    with pytest.raises(TopicConfigError, match=f"min.compaction.lag.ms={week}"):
        with_webhook.require(config, "kafka:9092")
    with_webhook.require(config | {"min.compaction.lag.ms": f"{week}0"}, "kafka:9092")


class Row(BaseModel):
    name: str


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: Topics(partitions=0), r"Topics\(partitions=0\): has no partition. Write partitions=4"),
        (lambda: Topics(prefix="my fleet/"), r"'my fleet/events' is no name of a topic. Write letters of ASCII"),
        (lambda: Topics(events="flöten"), "'flöten' is no name of a topic"),
        (lambda: Topics(prefix="x" * 249), "249 at most"),
        (lambda: application(topics=Topics(prefix="x" * 230), tables=(Table("x" * 20, Row),)), "249 at most"),
        (lambda: application(raw=(Raw("my topic", lambda _: None),)), r"Raw\('my topic'\): 'my topic' is no name"),
    ],
)
def test_a_topic_that_kafka_refuses_is_refused(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        declare()


@pytest.mark.parametrize("name", ["events", "feedback", "snapshots", "dead_letters", "query_instances"])
def test_a_topic_of_the_application_has_no_other_use(name: str) -> None:
    problem = rf"has the topic '{name}' of the application. Choose another name"
    with pytest.raises(DeclarationError, match=rf"Derived\('{name}'\): {problem}$"):
        application(derived=(Derived(name, Row, lambda _: ()),))
    for table in (Table(name, Row), Table("x", Row, topic=name)):
        with pytest.raises(DeclarationError, match=rf"Table\('{table.name}'\): {problem}, or Table\(topic=…\)"):
            application(tables=(table,))
    application(topics=Topics(prefix="a."), tables=(Table("x", Row, topic=name),))


def test_two_tables_have_two_topics() -> None:
    with pytest.raises(DeclarationError, match=r"Table\('y'\): has the topic 'x' of Table\('x'\)"):
        application(tables=(Table("x", Row), Table("y", Row, topic="x")))
