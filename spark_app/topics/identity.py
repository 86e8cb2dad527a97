"""The application's topics on the broker: their ids, their partitions, and the settings that change their meaning."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from contracts.model.application import Application
from contracts.settings import KafkaSettings
from services.runtime.errors import KafkaRequestError
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.interfaces import Admin
from spark_app.errors import BrokerUnreachableError, PartitionCountError, TopicAccessError, TopicMissingError

NAME = "job"
"""The name of the Kafka clients."""
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
    admin = KafkaAdmin(settings.client(), NAME)
    with _answers(settings.kafka):
        described = admin.describe(names)
    partitions = {name: described[name].partitions for name in (*read, application.topics.snapshots)}
    if len(set(partitions.values())) > 1 and not is_growing:
        raise PartitionCountError(partitions)
    _require_configs(admin, settings, application, read)
    return [TopicIdentity(name, *described[name]) for name in read]


def identify_topic(settings: KafkaSettings, application: Application, name: str) -> TopicIdentity:
    """Return one topic of the application's catalogue, as the broker has it now. Raises as `identify`."""
    admin = KafkaAdmin(settings.client(), NAME)
    with _answers(settings.kafka):
        described = admin.describe([name])
    _require_configs(admin, settings, application, [name])
    return TopicIdentity(name, *described[name])


def _require_configs(admin: Admin, settings: KafkaSettings, application: Application, names: list[str]) -> None:
    with _answers(settings.kafka):
        configs = admin.configs(names)
    for topic in application.catalogue():
        if topic.name in names:
            topic.require(configs[topic.name], settings.kafka)


@contextmanager
def _answers(kafka: str) -> Iterator[None]:
    """Raise the error of the job for a request about a topic that Kafka did not carry out."""
    try:
        yield
    except KafkaRequestError as error:
        if error.code == "UNKNOWN_TOPIC_OR_PART":
            raise TopicMissingError(error.topic, kafka) from error
        if error.code in REFUSALS:
            raise TopicAccessError(error.topic, error.detail) from error
        raise BrokerUnreachableError(kafka, error.detail) from error
