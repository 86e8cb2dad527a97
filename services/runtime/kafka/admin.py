"""Administers topics, and the offsets of groups.

Offsets are looked up, read and committed with consumers. An admin client whose broker stops while it waits may never
answer again, and its `list_consumer_group_offsets` dereferences a null pointer when the broker is not the coordinator
of the group (librdkafka issue 5040). So each wait for its answer has an end. Groups are not described: while the broker
restarts, `describe_consumer_groups` may abort the process (an assertion of librdkafka 2.16).
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from confluent_kafka import TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ListOffsetsResultInfo,
    NewPartitions,
    OffsetSpec,
)
from confluent_kafka.admin import NewTopic as ClientTopic
from typing_extensions import override

from services.runtime.errors import KafkaRequestError
from services.runtime.kafka.errors import raise_errors, requested
from services.runtime.kafka.interfaces import Admin
from services.runtime.kafka.offsets import lookup, lookup_available
from services.runtime.kafka.options import create_admin_client, create_consumer
from services.runtime.kafka.values import (
    EARLIEST,
    LATEST,
    NEWEST,
    GroupOffset,
    OffsetAt,
    Partition,
    TopicInfo,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from concurrent.futures import Future

    from confluent_kafka import Consumer
    from confluent_kafka.admin import AdminClient

    from services.runtime.kafka.options import Options
    from services.runtime.kafka.values import NewTopic

ANSWER_S = 10.0
"""The wait for one answer."""
CHANGE_S = 60.0
"""The wait for a change of topics."""
GRACE_S = 5.0
"""The time after which a client that should have answered will never do so."""
BEING_CHOSEN = {
    "_NOENT",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
}
"""The answers while the leader of a partition, or the coordinator of a group, is being chosen. A broker that does not
know the newest leader, as of a topic that was created again just now, answers with its epoch. An admin client itself
answers `_NOENT` when it knows no leader."""
FORMER_LEADER = {"_NOENT", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "NOT_LEADER_FOR_PARTITION"}
"""The answers to a client that knows a former leader, or epoch of it. An admin client keeps those for minutes."""
PAUSE_S = 0.1
NOT_A_MEMBER = {"UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION"}
"""The answers to a commit of a client that is no member of the group, while the group has members."""
Result = TypeVar("Result")


class KafkaAdmin(Admin):
    """An admin client, and a consumer for each group; the first use creates each."""

    def __init__(self, client: Options, name: str) -> None:
        self._client = client
        self._name = name
        self._opened: AdminClient | None = None
        self._consumers: dict[str, Consumer] = {}
        self._opening = threading.Lock()

    @override
    def partition_counts(self, topics: Collection[str] | None = None, within_s: float = ANSWER_S) -> Mapping[str, int]:
        """Use a consumer, which creates no topic that it asks for."""
        consumer = self._consumer(f"stateloop-{self._name}")
        if topics is None:
            with requested("list the topics"):
                listed = consumer.list_topics(timeout=within_s).topics
            return {name: len(topic.partitions) for name, topic in listed.items()}
        with requested("list the topics"):
            found = [consumer.list_topics(name, within_s).topics[name] for name in topics]
        return {name: len(topic.partitions) for name, topic in zip(topics, found, strict=True) if topic.error is None}

    @override
    def describe(self, topics: Collection[str]) -> Mapping[str, TopicInfo]:
        futures = self._admin.describe_topics(TopicCollection(list(topics)), request_timeout=ANSWER_S)
        described = {name: _result(futures[name], "describe the topic", name) for name in topics}
        return {name: TopicInfo(str(topic.topic_id), len(topic.partitions)) for name, topic in described.items()}

    @override
    def configs(self, topics: Collection[str], within_s: float = ANSWER_S) -> Mapping[str, Mapping[str, str]]:
        resources = {name: ConfigResource(ConfigResource.Type.TOPIC, name) for name in topics}
        futures = self._admin.describe_configs(list(resources.values()), request_timeout=within_s) if topics else {}
        configs = {
            name: _result(futures[resource], "describe the topic", name, within_s)
            for name, resource in resources.items()
        }
        return {name: {entry.name: entry.value or "" for entry in config.values()} for name, config in configs.items()}

    @override
    def create(self, topics: Collection[NewTopic]) -> Collection[str]:
        new = [ClientTopic(topic.name, topic.partitions, topic.replicas, config=dict(topic.config)) for topic in topics]
        futures = self._admin.create_topics(new, request_timeout=CHANGE_S) if new else {}
        return [name for name, future in futures.items() if _is_created(name, future)]

    @override
    def grow(self, partition_counts: Mapping[str, int]) -> None:
        new = [NewPartitions(topic, count) for topic, count in partition_counts.items()]
        futures = self._admin.create_partitions(new, request_timeout=CHANGE_S) if new else {}
        for topic, future in futures.items():
            _result(future, "add partitions to the topic", topic)

    @override
    def alter(self, topic: str, config: Mapping[str, str]) -> None:
        entries = [ConfigEntry(*setting, incremental_operation=AlterConfigOpType.SET) for setting in config.items()]
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
        futures = self._admin.incremental_alter_configs([resource], request_timeout=ANSWER_S)
        _result(futures[resource], "change the settings of the topic", topic)

    @override
    def delete_records(self, ends: Mapping[Partition, int]) -> None:
        before = [TopicPartition(*partition, end) for partition, end in ends.items()]
        if before:
            _repeated(lambda: self._delete_records(before), CHANGE_S)

    @override
    def offsets(self, at: Mapping[Partition, int], within_s: float = ANSWER_S) -> Mapping[Partition, int]:
        with requested("look offsets up"):
            return lookup(self._consumer(f"stateloop-{self._name}"), at, within_s)

    @override
    def available_offsets(self, at: Mapping[Partition, int], within_s: float = ANSWER_S) -> Mapping[Partition, int]:
        with requested("look offsets up"):
            return lookup_available(self._consumer(f"stateloop-{self._name}"), at, within_s)

    @override
    def records(self, at: Mapping[Partition, int], within_s: float = ANSWER_S) -> Mapping[Partition, OffsetAt]:
        specs = {TopicPartition(*partition): _spec(place) for partition, place in at.items()}
        results = _repeated(lambda: self._records(specs), within_s) if specs else {}
        return {
            Partition(partition.topic, partition.partition): OffsetAt(result.offset, result.timestamp)
            for partition, result in results.items()
        }

    @override
    def committed(
        self, group: str, partitions: Collection[Partition], within_s: float = ANSWER_S
    ) -> Mapping[Partition, GroupOffset]:
        places = [TopicPartition(*partition) for partition in partitions]
        commits = _repeated(lambda: self._committed(group, places, within_s), within_s)
        return {
            Partition(commit.topic, commit.partition): GroupOffset(commit.offset, commit.metadata or "")
            for commit in commits
        }

    @override
    def commit(self, group: str, offsets: Mapping[Partition, GroupOffset], within_s: float = ANSWER_S) -> bool:
        try:
            _repeated(lambda: self._commit(group, _places(offsets)), within_s)
        except KafkaRequestError as error:
            if error.code in NOT_A_MEMBER:
                return False
            raise
        return True

    @override
    def commit_async(self, group: str, offsets: Mapping[Partition, GroupOffset]) -> None:
        with requested(f"commit offsets of the group {group}"):
            self._consumer(group).commit(offsets=_places(offsets), asynchronous=True)

    @override
    def close(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()
        self._consumers.clear()

    @property
    def _admin(self) -> AdminClient:
        with self._opening:
            self._opened = self._opened or create_admin_client(self._client, self._name)
            return self._opened

    def _records(self, specs: Mapping[TopicPartition, OffsetSpec]) -> Mapping[TopicPartition, ListOffsetsResultInfo]:
        futures = self._admin.list_offsets(dict(specs), request_timeout=ANSWER_S)
        with self._forgetting_leaders():
            return {
                partition: _result(future, "look up offsets of", partition.topic)
                for partition, future in futures.items()
            }

    def _delete_records(self, before: list[TopicPartition]) -> None:
        futures = self._admin.delete_records(before, request_timeout=CHANGE_S)
        with self._forgetting_leaders():
            for partition, future in futures.items():
                _result(future, "delete records of the topic", partition.topic)

    @contextmanager
    def _forgetting_leaders(self) -> Iterator[None]:
        """Have the next request use a new client after an answer to one that knows a former leader."""
        try:
            yield
        except KafkaRequestError as error:
            if error.code in FORMER_LEADER:
                self._opened = None
            raise

    def _committed(self, group: str, places: list[TopicPartition], within_s: float) -> list[TopicPartition]:
        with requested(f"return the offsets of the group {group}"):
            commits = self._consumer(group).committed(places, within_s)
            raise_errors(commits)
            return commits

    def _commit(self, group: str, places: list[TopicPartition]) -> None:
        with requested(f"commit offsets of the group {group}"):
            raise_errors(self._consumer(group).commit(offsets=places, asynchronous=False) or ())

    def _consumer(self, group: str) -> Consumer:
        with self._opening:
            if group not in self._consumers:
                self._consumers[group] = create_consumer(self._client, self._name, group)
            return self._consumers[group]


def _places(offsets: Mapping[Partition, GroupOffset]) -> list[TopicPartition]:
    return [TopicPartition(*partition, *offset) for partition, offset in offsets.items()]


def _repeated(request: Callable[[], Result], within_s: float) -> Result:
    """Repeat a request while its broker is being chosen. Raises KafkaRequestError."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            return request()
        except KafkaRequestError as error:
            if error.code not in BEING_CHOSEN or time.monotonic() >= deadline:
                raise
        time.sleep(PAUSE_S)


def _spec(at: int) -> OffsetSpec:
    """Return the client's object for a time, or for what stands in its place."""
    special: dict[int, Callable[[], OffsetSpec]] = {  # have no types
        EARLIEST: OffsetSpec.earliest,
        LATEST: OffsetSpec.latest,
        NEWEST: OffsetSpec.max_timestamp,
    }
    return special[at]() if at in special else OffsetSpec.for_timestamp(at)


def _is_created(name: str, future: Future[None]) -> bool:
    try:
        _result(future, "create the topic", name)
    except KafkaRequestError as error:
        if error.code == "TOPIC_ALREADY_EXISTS":
            return False
        raise
    return True


def _result(future: Future[Result], request: str, topic: str, within_s: float | None = None) -> Result:
    """Return the answer to a request about a topic. Raises KafkaRequestError, also if there is no answer in time."""
    try:
        with requested(f"{request} {topic}", topic):
            return future.result((CHANGE_S if within_s is None else within_s) + GRACE_S)
    except TimeoutError as error:
        raise KafkaRequestError(f"{request} {topic}", "_TIMED_OUT", "no answer", topic) from error
