from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from bench.yardstick.__main__ import make_dead_letters
from bench.yardstick.application import app, stamped_by_senders
from contracts.model.application import Application
from contracts.settings import KafkaSettings
from services.tools.broker.readiness import wait_until
from spark_app.topics.identity import identify
from tests.deadline import DEADLINE_S
from tests.shared_broker import shared_broker

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker


@pytest.fixture
def broker() -> EmbeddedBroker:
    """Give the broker of the run, which this test need not have alone: its topics have a prefix."""
    return shared_broker()


def test_the_job_finds_its_topics_where_a_harness_made_those_of_all_engines(
    broker: EmbeddedBroker, topics_prefix: str
) -> None:
    topics = dataclasses.replace(stamped_by_senders, prefix=topics_prefix, events=f"{topics_prefix}events")
    application = Application(
        name="harnessed", event=app.event, state=app.state, enrichments=app.enrichments, topics=topics
    )
    settings = KafkaSettings(kafka=broker.bootstrap)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    harness = [topics.events, topics.feedback, topics.snapshots]
    for made in admin.create_topics([NewTopic(name, 2, 1) for name in harness]).values():
        made.result()

    make_dead_letters(topics, settings)
    make_dead_letters(topics, settings)

    wait_until(lambda: topics.dead_letters in admin.list_topics().topics, "the topic is listed", DEADLINE_S)
    assert [topic.name for topic in identify(settings, application)] == harness[:2]
