"""An admin client of the model broker."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from services.runtime.errors import KafkaRequestError
from services.runtime.kafka.values import GroupOffset, TopicInfo
from tests.simulation.kafka.errors import RefusedError, requested
from tests.simulation.kafka.lookup import UNKNOWN_PARTITION, offset_at, record_at

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from services.runtime.kafka.values import NewTopic, OffsetAt, Partition
    from tests.simulation.kafka.broker import Broker
    from tests.simulation.kafka.network import Network

NOT_FOUND = "_NOENT"
"""The code of the client's administration for a partition that it does not find."""
NOT_COMMITTED = GroupOffset(-1001)


class ModelAdmin:
    """Changes the broker at once. Implements Admin."""

    def __init__(self, broker: Broker, network: Network) -> None:
        self._broker = broker
        self._network = network

    def partition_counts(
        self,
        topics: Collection[str] | None = None,
        within_s: float = 10.0,  # noqa: ARG002
    ) -> Mapping[str, int]:
        """See `Admin.partition_counts`."""
        with requested("list the topics"):
            self._network.require()
        known = self._broker.topics.by_name
        return {name: len(topic.logs) for name, topic in known.items() if topics is None or name in topics}

    def describe(self, topics: Collection[str]) -> Mapping[str, TopicInfo]:
        """See `Admin.describe`."""
        return {name: self._described(name) for name in topics}

    def configs(self, topics: Collection[str], within_s: float = 10.0) -> Mapping[str, Mapping[str, str]]:  # noqa: ARG002
        """See `Admin.configs`."""
        found = {}
        for name in topics:
            with requested(f"describe the topic {name}", name):
                self._network.require()
                found[name] = dict(self._broker.topics.topic(name).config)
        return found

    def create(self, topics: Collection[NewTopic]) -> Collection[str]:
        """See `Admin.create`. It creates the others also if one is refused."""
        created, refusals = [], []
        for new in topics:
            try:
                with requested(f"create the topic {new.name}", new.name):
                    self._network.require()
                    self._broker.topics.create(new)
                created.append(new.name)
            except KafkaRequestError as error:
                if error.code != "TOPIC_ALREADY_EXISTS":
                    refusals.append(error)
        if refusals:
            raise refusals[0]
        return created

    def grow(self, partition_counts: Mapping[str, int]) -> None:
        """See `Admin.grow`."""
        refusals = []
        for number, (topic, count) in enumerate(partition_counts.items()):
            try:
                with requested(f"add partitions to the topic {topic}", topic):
                    if number == 0:  # all are in one request
                        self._network.require()
                    self._broker.topics.grow(topic, count)
            except KafkaRequestError as error:
                refusals.append(error)
        if refusals:
            raise refusals[0]

    def alter(self, topic: str, config: Mapping[str, str]) -> None:
        """See `Admin.alter`."""
        with requested(f"change the settings of the topic {topic}", topic):
            self._network.require()
            self._broker.topics.alter(topic, config)

    def delete_records(self, ends: Mapping[Partition, int]) -> None:
        """See `Admin.delete_records`."""
        for partition, end in ends.items():
            with requested(f"delete records of the topic {partition.topic}", partition.topic):
                self._network.require()
                log = self._broker.topics.log(partition, NOT_FOUND)
                if "delete" not in self._broker.topics.topic(partition.topic).config["cleanup.policy"]:
                    raise RefusedError("POLICY_VIOLATION")
                if end > log.end:
                    raise RefusedError("OFFSET_OUT_OF_RANGE")
                log.delete_before(end)

    def offsets(self, at: Mapping[Partition, int], within_s: float = 10.0) -> Mapping[Partition, int]:  # noqa: ARG002
        """See `Admin.offsets`. A new partition has a leader at once."""
        with requested("look offsets up"):
            self._network.require()
            logs = {partition: self._broker.topics.log(partition, UNKNOWN_PARTITION) for partition in at}
            if any(log.leaderless for log in logs.values()):
                raise RefusedError("LEADER_NOT_AVAILABLE")
            return {partition: offset_at(logs[partition], one) for partition, one in at.items()}

    def available_offsets(self, at: Mapping[Partition, int], within_s: float = 10.0) -> Mapping[Partition, int]:
        """See `Admin.available_offsets`."""
        with requested("look offsets up"):
            leaderless = {one for one in at if self._broker.topics.log(one, UNKNOWN_PARTITION).leaderless}
        return self.offsets({one: place for one, place in at.items() if one not in leaderless}, within_s)

    def records(self, at: Mapping[Partition, int], within_s: float = 10.0) -> Mapping[Partition, OffsetAt]:  # noqa: ARG002
        """See `Admin.records`. A new partition has a leader at once."""
        with requested("look up offsets"):
            self._network.require()
            return {
                partition: record_at(self._broker.topics.log(partition, NOT_FOUND), one)
                for partition, one in at.items()
            }

    def committed(
        self,
        group: str,
        partitions: Collection[Partition],
        within_s: float = 10.0,  # noqa: ARG002
    ) -> Mapping[Partition, GroupOffset]:
        """See `Admin.committed`."""
        with requested(f"return the offsets of the group {group}"):
            self._network.require()
        offsets = self._broker.groups.group(group).offsets
        return {partition: offsets.get(partition, NOT_COMMITTED) for partition in partitions}

    def commit(self, group: str, offsets: Mapping[Partition, GroupOffset], within_s: float = 10.0) -> bool:  # noqa: ARG002
        """See `Admin.commit`. It commits the others also if one is refused."""
        found = self._broker.groups.group(group)
        with requested(f"commit offsets of the group {group}"):
            self._network.require()
            found.expel(self._broker.now)
            if found.members:
                return False
            found.offsets.update({one: offset for one, offset in offsets.items() if self._broker.topics.has(one)})
            for partition in offsets:
                self._broker.topics.log(partition)
        return True

    def commit_async(self, group: str, offsets: Mapping[Partition, GroupOffset]) -> None:
        """See `Admin.commit_async`."""
        with suppress(KafkaRequestError):
            self.commit(group, offsets)

    def close(self) -> None:
        """See `Admin.close`."""

    def _described(self, name: str) -> TopicInfo:
        with requested(f"describe the topic {name}", name):
            self._network.require()
            topic = self._broker.topics.topic(name)
        return TopicInfo(topic.id, len(topic.logs))
