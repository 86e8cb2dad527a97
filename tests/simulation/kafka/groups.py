"""Consumer groups: committed offsets, and members that share partitions by cooperative rebalances."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulation.kafka.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from services.runtime.kafka.values import GroupOffset, Partition
    from tests.simulation.kafka.topics import Topics

UNKNOWN_MEMBER = "UNKNOWN_MEMBER_ID"
REFRESH_S = 300.0
"""The age at which a client reads the number of partitions of a topic again."""


@dataclass
class Member:
    """A member: the partitions that it had when it joined last, and those that it is to have."""

    topic: str
    session_s: float
    heartbeat_at: float
    owned: frozenset[int]
    assigned: frozenset[int] = field(default=frozenset())
    instance: str | None = None


class Group:
    """A group. A rebalance is complete when all members have joined it; then its generation is the next one."""

    def __init__(self, topics: Topics) -> None:
        self.offsets: dict[Partition, GroupOffset] = {}
        self.members: dict[int, Member] = {}
        self.generation = 0
        self._topics = topics
        self._joined: set[int] = set()
        self._is_rebalancing = False
        self._assigned_at = 0.0
        self._assigned_counts: dict[str, int] = {}
        """The numbers of partitions that were found to be assigned, by topic, since the last rebalance."""
        self._last_id = 0

    def join(self, topic: str, session_s: float, now: float, instance: str | None = None) -> int:
        """Return the id of a new member. A member with the instance of an earlier one takes its place."""
        self._last_id += 1
        earlier = self.member_of(instance, topic)
        if earlier is not None:
            self.members[self._last_id] = self.members.pop(earlier)
            if earlier in self._joined:
                self._joined ^= {earlier, self._last_id}
            self.heartbeat(self._last_id, now)
            return self._last_id
        self.members[self._last_id] = Member(topic, session_s, now, frozenset(), instance=instance)
        self.rejoin(self._last_id, (), now)
        return self._last_id

    def rejoin(self, member: int, owned: Collection[int], now: float) -> None:
        """Let a member take part in a rebalance, which it may begin. Raises RefusedError."""
        self.member(member).owned = frozenset(owned)
        self._is_rebalancing = True
        self._joined.add(member)
        self._complete(now)

    def heartbeat(self, member: int, now: float) -> bool:
        """Continue the session of a member; return whether it still is one."""
        self.expel(now)
        found = self.members.get(member)
        if found is None:
            return False
        found.heartbeat_at = now
        self._is_rebalancing = self._is_rebalancing or self._has_new_partitions(found.topic, now)
        return True

    def expel(self, now: float) -> None:
        """Remove the members whose sessions are over."""
        for late in [id_ for id_, one in self.members.items() if now - one.heartbeat_at > one.session_s]:
            self.leave(late, now)

    def is_awaiting(self, member: int) -> bool:
        """Return whether a rebalance waits for a member."""
        return self._is_rebalancing and member not in self._joined

    def leave(self, member: int, now: float) -> None:
        """Remove a member."""
        self.members.pop(member, None)
        self._joined.discard(member)
        self._is_rebalancing = True
        self._complete(now)

    def commit(self, member: int, generation: int, offsets: Mapping[Partition, GroupOffset]) -> None:
        """Commit offsets of a member. Raises RefusedError."""
        self.member(member)
        if generation != self.generation:
            raise RefusedError("ILLEGAL_GENERATION")
        for partition in offsets:
            self._topics.log(partition)
        self.offsets.update(offsets)

    def member_of(self, instance: str | None, topic: str) -> int | None:
        """Return the id of the member of an instance; None if there is none."""
        found = (number for number, one in self.members.items() if (one.instance, one.topic) == (instance, topic))
        return None if instance is None else next(found, None)

    def member(self, member: int) -> Member:
        """Return a member. Raises RefusedError."""
        if member not in self.members:
            raise RefusedError(UNKNOWN_MEMBER)
        return self.members[member]

    def _complete(self, now: float) -> None:
        if self._joined != self.members.keys():
            return
        self.generation += 1
        self._joined, self._is_rebalancing, self._assigned_at = set(), False, now
        self._assigned_counts = {}
        for topic in {member.topic for member in self.members.values()}:
            self._assign([member for member in self.members.values() if member.topic == topic], self._numbers(topic))

    def _assign(self, members: list[Member], numbers: set[int]) -> None:
        """Let members keep what they own up to their share; what they lose is free in the next rebalance."""
        least, more = divmod(len(numbers), len(members))
        for index, member in enumerate(sorted(members, key=lambda one: -len(one.owned))):
            member.assigned = frozenset(sorted(member.owned & numbers)[: least + (index < more)])
        for number in sorted(numbers.difference(*(one.owned for one in members))):
            min(members, key=lambda one: len(one.assigned)).assigned |= {number}

    def _has_new_partitions(self, topic: str, now: float) -> bool:
        """Return whether the leader of the group finds other partitions of a topic than those that are assigned."""
        count = self._count(topic)
        if count == self._assigned_counts.get(topic) or now - self._assigned_at < REFRESH_S:
            return False
        if self._numbers(topic).difference(*(one.assigned for one in self.members.values() if one.topic == topic)):
            return True
        self._assigned_counts[topic] = count
        return False

    def _numbers(self, topic: str) -> set[int]:
        return set(range(self._count(topic)))

    def _count(self, topic: str) -> int:
        found = self._topics.by_name.get(topic)
        return len(found.logs) if found else 0


class Groups:
    """The groups by name; each exists from its first use on."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self.by_name: dict[str, Group] = {}

    def group(self, name: str) -> Group:
        """Return a group."""
        return self.by_name.setdefault(name, Group(self._topics))

    def forget(self, partitions: Collection[Partition]) -> None:
        """Remove the committed offsets of deleted partitions."""
        for group in self.by_name.values():
            for partition in partitions:
                group.offsets.pop(partition, None)

    def resume(self, now: float) -> None:
        """Begin the sessions of all members anew."""
        for group in self.by_name.values():
            for member in group.members.values():
                member.heartbeat_at = now
