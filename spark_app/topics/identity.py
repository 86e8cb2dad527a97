"""The application's topics on the broker: their ids, their partitions, and the settings that change their meaning."""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import ConfigResource

from contracts.model.application import Application
from contracts.settings import KafkaSettings
from services.runtime.kafka.options import create_admin_client
from spark_app.errors import BrokerUnreachableError, PartitionCountError, TopicAccessError, TopicMissingError

PATIENCE_S = 10.0
REFUSALS = ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED")


@dataclass(frozen=True)
class TopicIdentity:
    """One existing topic. A topic that is deleted and created again has another id."""

    name: str
    id: str
    partitions: int

    def facts(self) -> dict[str, str | int]:
        """Return the identity in the checkpoint's format."""
        return asdict(self)


def sources(application: Application) -> list[str]:
    """Return the names of the topics that the job reads."""
    topics = application.topics
    return [topics.events, topics.feedback] if application.enrichments else [topics.events]


def identify(settings: KafkaSettings, application: Application, *, is_growing: bool = False) -> list[TopicIdentity]:
    """Return the topics that the job reads, as the broker has them now. Those that it writes must exist too.

    Their numbers of partitions are equal, unless partitions are being added (`is_growing`).

    Raises BrokerUnreachableError, TopicMissingError, TopicAccessError, PartitionCountError, and TopicConfigError where
    the timestamp of a record would have another meaning than in the catalogue.
    """
    read = sources(application)
    names = [*read, application.topics.snapshots, application.topics.dead_letters]
    admin, kafka = create_admin_client(settings.client(), "job"), settings.kafka
    described = admin.describe_topics(TopicCollection(names), request_timeout=PATIENCE_S)
    found = {name: _answer(described[name], name, kafka) for name in names}
    partitions = {name: len(found[name].partitions) for name in (*read, application.topics.snapshots)}
    if len(set(partitions.values())) > 1 and not is_growing:
        raise PartitionCountError(partitions)
    configs = admin.describe_configs([_resource(name) for name in found], request_timeout=PATIENCE_S)
    for topic in application.catalogue():
        if topic.name in read:
            topic.require(_values(_answer(configs[_resource(topic.name)], topic.name, kafka)), kafka)
    return [TopicIdentity(name, str(found[name].topic_id), partitions[name]) for name in read]


def identify_topic(settings: KafkaSettings, application: Application, name: str) -> TopicIdentity:
    """Return one topic of the application's catalogue, as the broker has it now. Raises as `identify`."""
    admin, kafka = create_admin_client(settings.client(), "job"), settings.kafka
    described = admin.describe_topics(TopicCollection([name]), request_timeout=PATIENCE_S)
    found = _answer(described[name], name, kafka)
    configs = admin.describe_configs([_resource(name)], request_timeout=PATIENCE_S)
    declared = next(topic for topic in application.catalogue() if topic.name == name)
    declared.require(_values(_answer(configs[_resource(name)], name, kafka)), kafka)
    return TopicIdentity(name, str(found.topic_id), len(found.partitions))


def _resource(name: str) -> ConfigResource:
    return ConfigResource(ConfigResource.Type.TOPIC, name)


def _values(config: Mapping[str, Any]) -> dict[str, str]:
    return {name: entry.value or "" for name, entry in config.items()}


def _answer(future: Future[Any], name: str, kafka: str) -> Any:
    try:
        return future.result()
    except KafkaException as error:
        problem = error.args[0]
        if problem.name() == "UNKNOWN_TOPIC_OR_PART":
            raise TopicMissingError(name, kafka) from error
        if problem.name() in REFUSALS:
            raise TopicAccessError(name, problem.str()) from error
        raise BrokerUnreachableError(kafka, problem.str()) from error
