"""The errors of the topics command, each with a remedy in its message."""

from collections.abc import Iterator
from contextlib import contextmanager

from contracts.errors import PermanentError, StateloopError
from services.runtime.errors import KafkaOperationError, KafkaRequestError, NoBrokerError

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

    def __init__(self, topic: str, code: str, detail: str) -> None:
        advice = ADVICE.get(code, "change it on the broker, or create the topic by docs/reference/wire.md")
        super().__init__(f"the broker refuses topic {topic!r} ({detail}): {advice}")
        self.topic = topic
        self.code = code


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


def refused(topic: str, kafka: str, error: KafkaOperationError) -> TopicsError | NoBrokerError:
    """Return the error of a failed request about a topic."""
    if error.is_of_client:
        return NoBrokerError(kafka, error.detail)
    return TopicRefusedError(topic, error.code, error.detail)


@contextmanager
def answered_at(address: str) -> Iterator[None]:
    """Raise NoBrokerError, which names the address of the brokers, instead of KafkaRequestError."""
    try:
        yield
    except KafkaRequestError as error:
        raise NoBrokerError(address, error.detail) from error
