"""The errors of the topics command, each with a remedy in its message."""

from confluent_kafka import KafkaError

from contracts.errors import PermanentError, StateloopError
from services.runtime.errors import NoBrokerError

RIGHTS = "grant this user Create, Describe and DescribeConfigs on it, or log in as another with STATELOOP_KAFKA_OPTIONS"
ADVICE = {
    "TOPIC_AUTHORIZATION_FAILED": RIGHTS,
    "CLUSTER_AUTHORIZATION_FAILED": RIGHTS,
    "INVALID_REPLICATION_FACTOR": "set STATELOOP_REPLICATION to what the brokers allow",
    "INVALID_PARTITIONS": "set STATELOOP_PARTITIONS to what the brokers allow",
}


class TopicsError(StateloopError):
    """The base of the command's errors."""


class TopicRefusedError(TopicsError, PermanentError):
    """The broker does not allow this user to create or to describe a topic."""

    def __init__(self, topic: str, error: KafkaError) -> None:
        advice = ADVICE.get(error.name(), "change it on the broker, or create the topic by docs/reference/wire.md")
        super().__init__(f"the broker refuses topic {topic!r} ({error.str()}): {advice}")
        self.topic = topic
        self.code = error.name()


class WrongPartitionsError(TopicsError, PermanentError):
    """A topic exists with another number of partitions."""

    def __init__(self, topic: str, found: int, wanted: int) -> None:
        super().__init__(
            f"topic {topic!r} has {found} partitions, not {wanted}: "
            f"set STATELOOP_PARTITIONS={found}, or add partitions with `stateloop rebuild --partitions`"
        )
        self.topic = topic
        self.found = found
        self.wanted = wanted


class FewerPartitionsError(TopicsError, PermanentError):
    """A topic has more partitions than it should get."""

    def __init__(self, topic: str, found: int, wanted: int) -> None:
        super().__init__(
            f"topic {topic!r} has {found} partitions, not {wanted} or fewer, and Kafka removes none: "
            f"write --partitions {found} or more"
        )
        self.topic = topic
        self.found = found
        self.wanted = wanted


class WebhooksError(TopicsError, PermanentError):
    """The alerts of the application call webhooks, and the workers of these have stored offsets of the alerts."""

    def __init__(self, application: str) -> None:
        super().__init__(
            f"partitions cannot be added to the topics of {application}: calls of webhooks that are due continue at "
            "the offsets of their alerts. Once all are delivered, declare the alerts without webhook=…, and add the "
            "partitions; then declare it again"
        )


def refused(topic: str, kafka: str, error: KafkaError) -> TopicsError | NoBrokerError:
    """Return the error of a failed request; the names of the client's own codes begin with an underscore."""
    return NoBrokerError(kafka, error.str()) if error.name().startswith("_") else TopicRefusedError(topic, error)
