"""What the broker says of the topics that the job reads: which they are, and how many partitions they have."""

from dataclasses import asdict, dataclass

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from contracts.application import Application
from spark_app.errors import BrokerUnreachable, TopicMissing

PATIENCE_S = 10.0


@dataclass(frozen=True)
class TopicIdentity:
    """One topic as it exists now. A topic deleted and made again has another id."""

    name: str
    id: str
    partitions: int

    def facts(self) -> dict[str, str | int]:
        """As the checkpoint remembers it."""
        return asdict(self)


def sources(application: Application) -> list[str]:
    """The names of the topics that the job reads."""
    topics = application.topics
    return [topics.events, topics.feedback] if application.enrichments else [topics.events]


def identify(kafka: str, names: list[str]) -> list[TopicIdentity]:
    """These topics as the broker has them now. Raises BrokerUnreachable, TopicMissing."""
    admin = AdminClient({"bootstrap.servers": kafka, "log_level": 0})
    try:
        futures = admin.describe_topics(TopicCollection(names), request_timeout=PATIENCE_S)
        return [_identity(name, futures[name].result()) for name in names]
    except KafkaException as error:
        code = error.args[0].name()
        if code == "UNKNOWN_TOPIC_OR_PART":
            missing = next((name for name in names if _is_missing(futures[name])), names[0])
            raise TopicMissing(missing, kafka) from error
        raise BrokerUnreachable(kafka, error.args[0].str()) from error


def _identity(name: str, described: object) -> TopicIdentity:
    return TopicIdentity(name, str(getattr(described, "topic_id")), len(getattr(described, "partitions")))  # noqa: B009


def _is_missing(future: object) -> bool:
    return future.exception() is not None  # type: ignore[attr-defined]  # the client's futures are not typed
