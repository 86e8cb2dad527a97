"""The options of a member of a group, and what is checked before it reads."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from contracts.settings import WorkerSettings
from examples.flights.application import app as flights
from services.runtime.errors import ForeignTopicsError
from services.runtime.kafka.values import GroupOffset, NewTopic, Partition
from services.runtime.topic_owners import GROUP, TopicOwner
from services.runtime.worker.subscription import SESSION, fenced_member_options, member_options, subscription
from tests.simulation.kafka.broker import Broker
from tests.simulation.kafka.clients import ModelKafka
from tests.simulation.kafka.network import Network
from tests.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from services.runtime.kafka.interfaces import TopicSubscription

STRATEGY = "partition.assignment.strategy"
TOPICS = (flights.topics.snapshots, flights.topics.feedback)


@pytest.fixture
def kafka() -> Iterator[ModelKafka]:
    """Give a broker with these topics."""
    loop = VirtualTimeLoop()
    kafka = ModelKafka(
        Broker(loop, datetime(2026, 1, 1, tzinfo=UTC), random.Random(0)), Network(loop, random.Random(0))
    )
    kafka.admin("test").create([NewTopic(topic, 1, 1, {}) for topic in TOPICS])
    yield kafka
    loop.close()


def subscribed(kafka: ModelKafka) -> TopicSubscription:
    settings = WorkerSettings(application="", max_poll_records=7)
    drain, options = timedelta(seconds=3), {"client.rack": "a"}
    return subscription(settings, kafka, flights, group="g", topics=TOPICS, drain=drain, options=options)


def test_the_options_of_the_user_replace_the_defaults() -> None:
    assert member_options({}) == {STRATEGY: "cooperative-sticky", SESSION: "10000"}
    assert member_options({SESSION: "6000", STRATEGY: "range"}) == {SESSION: "6000", STRATEGY: "range"}
    assert member_options({"client.rack": "a"}, "consumer") == {"group.protocol": "consumer", "client.rack": "a"}


@pytest.mark.parametrize(("given", "session"), [("", "10000"), ("6000", "10000"), ("45000", "45000")])
def test_the_session_of_a_fenced_member_is_not_shorter_than_the_default(given: str, session: str) -> None:
    options = fenced_member_options({SESSION: given, STRATEGY: "range", "client.rack": "a"})
    assert options == {STRATEGY: "cooperative-sticky", SESSION: session, "client.rack": "a"}


def test_a_member_reads_the_first_topic_when_all_exist(kafka: ModelKafka) -> None:
    found = subscribed(kafka)
    assert found[:4] == ("g", flights.topics.snapshots, 7, timedelta(seconds=3))
    assert found.options == {"client.rack": "a"}
    found.check.check(lambda: set(TOPICS))
    assert found.check.is_complete
    incomplete = subscribed(kafka)
    incomplete.check.check(lambda: {flights.topics.snapshots})
    assert not incomplete.check.is_complete


def test_topics_of_another_application_are_refused(kafka: ModelKafka) -> None:
    place, owner = Partition(flights.topics.snapshots, 0), TopicOwner("trains", "snapshots")
    assert kafka.admin("test").commit(GROUP, {place: GroupOffset(1, str(owner))})
    with pytest.raises(ForeignTopicsError, match="trains"):
        subscribed(kafka).check.check(lambda: set(TOPICS))
