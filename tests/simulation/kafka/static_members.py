"""A static member of a group of the model broker: one member of the group for each of its topics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from services.runtime.errors import ConsumerFailedError
from services.runtime.kafka.values import Partition
from tests.simulation.kafka.network import POLL_S

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from services.runtime.kafka.assignment_interfaces import StaticMembership
    from tests.simulation.kafka.broker import Broker
    from tests.simulation.kafka.network import Network

FENCED = "the instance is fenced by another one"


class ModelStaticMember:
    """Follows its group while it runs, and does not leave it. Implements StaticMember."""

    def __init__(self, broker: Broker, network: Network, membership: StaticMembership) -> None:
        self._broker = broker
        self._network = network
        self._group = broker.groups.group(membership.group)
        self._instance = membership.instance
        self._session_s = membership.session.total_seconds()
        self._members: dict[str, int] = {}
        self._owned: dict[str, frozenset[int]] = dict.fromkeys(membership.topics, frozenset())

    async def run(self, assigned: Callable[[Collection[Partition]], None]) -> None:
        """See `StaticMember.run`."""
        before: frozenset[Partition] = frozenset()
        while True:
            await self._network.pass_through()
            for topic in self._owned:
                self._follow(topic)
            after = frozenset(Partition(topic, number) for topic, owned in self._owned.items() for number in owned)
            if after != before:
                assigned(after)
            before = after
            await asyncio.sleep(POLL_S)

    def _follow(self, topic: str) -> None:
        """Take part in rebalances: join, give back what others are to have, take what is free."""
        group, now = self._group, self._broker.now
        member = self._members.get(topic, 0)
        if not group.heartbeat(member, now):
            if member and group.member_of(self._instance, topic) is not None:
                raise ConsumerFailedError("_FATAL", FENCED)
            member = self._members[topic] = group.join(topic, self._session_s, now, self._instance)
            self._owned[topic] = group.member(member).owned
        assigned = group.member(member).assigned
        gone, self._owned[topic] = self._owned[topic] - assigned, assigned
        if gone or group.is_awaiting(member):
            group.rejoin(member, assigned, now)
