"""Creates the catalogue's topics and claims them. A topic that exists with other settings is an error."""

import sys
import time
from collections.abc import Collection, Sequence
from concurrent.futures import Future

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, NewTopic

from contracts.model.suite import load_suite
from contracts.model.topics import Topic
from contracts.settings import read
from services.runtime.broker_check import require_broker
from services.runtime.command_line import report, run
from services.runtime.errors import KafkaRequestError, NoBrokerError
from services.runtime.kafka.errors import requested
from services.runtime.topic_owners import TopicOwners
from services.topics.errors import TopicRefusedError, WrongPartitionsError, refused
from services.topics.settings import TopicsSettings

ANSWER_S = 10
PAUSE_S = 0.1
ONE_COPY = (
    "warning: the topics were made with one copy. A broker that stops then stops the loop, and a lost disk loses "
    "records. With three brokers or more, delete the topics and set STATELOOP_REPLICATION=3 (and "
    "STATELOOP_MIN_INSYNC_REPLICAS=2); STATELOOP_REPLICATION=1 makes one copy without this warning"
)


def make(admin: AdminClient, topics: Sequence[Topic], settings: TopicsSettings) -> list[str]:
    """Create the missing topics, and return their names when the broker lists them: the next process looks for them.

    Raises TopicConfigError, TopicsError, NoBrokerError.
    """
    there = _partitions(admin, settings)
    require(admin, [topic for topic in topics if topic.name in there], settings)
    missing = [topic for topic in topics if topic.name not in there]
    new = [_new(topic, settings) for topic in missing]
    futures = admin.create_topics(new) if new else {}
    made = [topic for topic in missing if _made(topic.name, futures[topic.name], settings)]
    by_others = [topic for topic in missing if topic not in made]  # created meanwhile, or not visible to this user
    require(admin, by_others, settings)
    if made:
        _partitions(admin, settings, {topic.name for topic in made})
    return [topic.name for topic in made]


def require(admin: AdminClient, topics: Sequence[Topic], settings: TopicsSettings) -> None:
    """Require that these topics of the broker have the catalogue's settings.

    Raises TopicConfigError, TopicsError, NoBrokerError.
    """
    if not topics:
        return
    there = _partitions(admin, settings, {topic.name for topic in topics})
    resources = {topic.name: ConfigResource(ConfigResource.Type.TOPIC, topic.name) for topic in topics}
    futures = admin.describe_configs(list(resources.values()), request_timeout=ANSWER_S)
    for topic in topics:
        topic.require(_config(topic.name, futures[resources[topic.name]], settings), settings.kafka)
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
    admin = require_broker(settings, settings.patience.total_seconds(), _report)
    owners = [TopicOwners(one, settings.client(), _warn) for one in suite.applications]
    if not settings.take_over:
        for one in owners:
            one.check()
    made = make(admin, suite.catalogue(), settings)
    for one in owners:
        one.claim(take_over=settings.take_over)
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


def _partitions(admin: AdminClient, settings: TopicsSettings, awaited: Collection[str] = ()) -> dict[str, int]:
    """Return the number of partitions by topic; a broker may list an awaited topic a moment after its creation."""
    deadline = time.monotonic() + ANSWER_S
    while True:
        try:
            listed = admin.list_topics(timeout=ANSWER_S).topics
        except KafkaException as error:
            raise NoBrokerError(settings.kafka, error.args[0].str()) from error
        if listed.keys() >= set(awaited) or time.monotonic() >= deadline:
            return {name: len(topic.partitions) for name, topic in listed.items()}
        time.sleep(PAUSE_S)


def _made(name: str, future: Future[None], settings: TopicsSettings) -> bool:
    try:
        with requested("create a topic"):
            future.result()
    except KafkaRequestError as error:
        if error.code == "TOPIC_ALREADY_EXISTS":
            return False
        raise refused(name, settings.kafka, error) from error
    return True


def _config(name: str, future: Future[dict[str, ConfigEntry]], settings: TopicsSettings) -> dict[str, str]:
    try:
        with requested("describe a topic"):
            return {entry.name: entry.value or "" for entry in future.result().values()}
    except KafkaRequestError as error:
        raise refused(name, settings.kafka, error) from error


if __name__ == "__main__":
    sys.exit(run("topics", main))
