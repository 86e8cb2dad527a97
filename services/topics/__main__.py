"""Make the catalogue's topics. Those that are there stay as they are; a wrong partition count is an error."""

import sys
import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from contracts.application import load
from contracts.errors import StateloopError
from contracts.topics import Topic
from services.topics.settings import Settings


class WrongPartitions(StateloopError):
    """A topic is there with another number of partitions."""

    def __init__(self, topic: str, found: int, wanted: int) -> None:
        super().__init__(
            f"topic {topic!r} has {found} partitions, not {wanted}: "
            f"set STATELOOP_PARTITIONS={found}, or delete it and its checkpoint"
        )


class NoBroker(StateloopError):
    """No broker answered within the patience."""

    def __init__(self, kafka: str) -> None:
        super().__init__(f"no broker answers at {kafka}: start it, or set STATELOOP_KAFKA")


def make(admin: AdminClient, topics: tuple[Topic, ...], settings: Settings) -> list[str]:
    """Make what is missing; gives the names of the made. Raises WrongPartitions, KafkaException."""
    have = admin.list_topics(timeout=10).topics
    for topic in topics:
        if topic.name in have and len(have[topic.name].partitions) != settings.partitions:
            raise WrongPartitions(topic.name, len(have[topic.name].partitions), settings.partitions)
    missing = [
        NewTopic(topic.name, settings.partitions, settings.replication, config=topic.config())
        for topic in topics
        if topic.name not in have
    ]
    futures = admin.create_topics(missing) if missing else {}
    return [name for name, future in futures.items() if _made(future)]


def _made(future: object) -> bool:
    try:
        future.result()  # type: ignore[attr-defined]  # the client's futures are not typed
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise
    return True


def main() -> int:
    """Wait for the broker, make the topics, say which."""
    settings = Settings()
    try:
        application = load(settings.application)
        admin = AdminClient({"bootstrap.servers": settings.kafka, "log_level": 0})
        _await_broker(admin, settings)
        made = make(admin, application.topics.catalogue(application.state), settings)
    except StateloopError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"made {', '.join(made)}" if made else "all topics are there")
    return 0


def _await_broker(admin: AdminClient, settings: Settings) -> None:
    deadline = time.monotonic() + settings.patience.total_seconds()
    while time.monotonic() < deadline:
        try:
            admin.list_topics(timeout=2)
        except KafkaException:
            continue
        return
    raise NoBroker(settings.kafka)


if __name__ == "__main__":
    sys.exit(main())
