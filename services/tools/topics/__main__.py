"""Creates the catalogue's topics and claims them. A topic that exists with other settings is an error."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from contracts.model.suite import load_suite
from contracts.settings import read
from services.runtime.command_line import report, run
from services.runtime.errors import KafkaRequestError
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.broker_check import require_broker
from services.runtime.kafka.values import NewTopic
from services.runtime.topic_owners import TopicOwners
from services.tools.topics.errors import TopicRefusedError, WrongPartitionsError, answered_at, refused
from services.tools.topics.settings import TopicsSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from contracts.model.topics import Topic
    from services.runtime.kafka.interfaces import Admin

ANSWER_S = 10
PAUSE_S = 0.1
ONE_COPY = (
    "warning: the topics were made with one copy. A broker that stops then stops the loop, and a lost disk loses "
    "records. With three brokers or more, delete the topics and set STATELOOP_REPLICATION=3 (and "
    "STATELOOP_MIN_INSYNC_REPLICAS=2); STATELOOP_REPLICATION=1 makes one copy without this warning"
)


def make(admin: Admin, topics: Sequence[Topic], settings: TopicsSettings) -> list[str]:
    """Create the missing topics, and return their names when the broker lists them: the next process looks for them.

    Raises TopicConfigError, TopicsError, NoBrokerError.
    """
    there = _partitions(admin, settings)
    require(admin, [topic for topic in topics if topic.name in there], settings)
    missing = [topic for topic in topics if topic.name not in there]
    try:
        made = admin.create([_new(topic, settings) for topic in missing])
    except KafkaRequestError as error:
        raise refused(error.topic, settings.kafka, error) from error
    by_others = [topic for topic in missing if topic.name not in made]  # created meanwhile, or not visible to this user
    require(admin, by_others, settings)
    if made:
        _partitions(admin, settings, made)
    return list(made)


def require(admin: Admin, topics: Sequence[Topic], settings: TopicsSettings) -> None:
    """Require that these topics of the broker have the catalogue's settings; warn of a shorter retention.

    Raises TopicConfigError, TopicsError, NoBrokerError.
    """
    if not topics:
        return
    there = _partitions(admin, settings, {topic.name for topic in topics})
    try:
        configs = admin.configs([topic.name for topic in topics])
    except KafkaRequestError as error:
        raise refused(error.topic, settings.kafka, error) from error
    for topic in topics:
        topic.require(configs[topic.name], settings.kafka)
        if shorter := topic.shorter_retention(configs[topic.name], settings.kafka):
            _warn(str(shorter))
        if topic.name not in there:
            raise TopicRefusedError(topic.name, "TOPIC_AUTHORIZATION_FAILED", "Broker: Topic authorization failed")
        if topic.grows and there[topic.name] != (wanted := settings.partitions or topic.partitions):
            raise WrongPartitionsError(topic.name, there[topic.name], wanted)


def main() -> None:
    """Wait for the broker, create the topics, claim the outputs, and print which topics were created.

    Raises StateloopError.
    """
    settings = read(TopicsSettings)
    suite = load_suite(settings.application)
    require_broker(settings, settings.patience.total_seconds(), _report)
    owners = [
        TopicOwners(application, KafkaAdmin(settings.client(), "topic-owners"), _warn)
        for application in suite.applications
    ]
    if not settings.take_over:
        for owner in owners:
            owner.check()
    made = make(KafkaAdmin(settings.client(), "topics"), suite.catalogue(), settings)
    for owner in owners:
        owner.claim(take_over=settings.take_over)
    if made and "replication" not in settings.model_fields_set:
        _report(ONE_COPY)
    print(f"made {', '.join(made)}" if made else "all topics are there")


def _report(line: str) -> None:
    report("topics", line)


def _warn(problem: str) -> None:
    _report(f"warning: {problem}")


def _new(topic: Topic, settings: TopicsSettings) -> NewTopic:
    config = topic.config() | {"min.insync.replicas": str(settings.insync)}
    return NewTopic(topic.name, settings.partitions or topic.partitions, settings.replication, config=config)


def _partitions(admin: Admin, settings: TopicsSettings, awaited: Collection[str] = ()) -> Mapping[str, int]:
    """Return the number of partitions by topic; a broker may list an awaited topic a moment after its creation."""
    deadline = time.monotonic() + ANSWER_S
    while True:
        with answered_at(settings.kafka):
            counts = admin.partition_counts()
        if counts.keys() >= set(awaited) or time.monotonic() >= deadline:
            return counts
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    sys.exit(run("topics", main))
