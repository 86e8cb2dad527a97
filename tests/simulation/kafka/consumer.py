"""A member of a group of the model broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from contracts.records.record import Record
from services.runtime.kafka.membership import NEVER, GroupMembership
from services.runtime.kafka.values import GroupOffset, Partition
from tests.simulation.kafka.cursor import fetch_position
from tests.simulation.kafka.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine, Mapping

    from services.runtime.kafka.interfaces import RebalanceListener, TopicSubscription
    from tests.simulation.kafka.broker import Broker
    from tests.simulation.kafka.network import Network

HEARTBEAT_S = 3.0
SESSION, SESSION_MS = "session.timeout.ms", 45_000
"""The time without heartbeats after which a member is expelled, and its default."""
MARGIN_S = 1.0


class ModelGroupConsumer:
    """Joins the group at its first fetch, and sends heartbeats until it is closed. Implements FencedGroupConsumer."""

    def __init__(self, broker: Broker, network: Network, subscription: TopicSubscription) -> None:
        self._broker = broker
        self._network = network
        self._group = broker.groups.group(subscription.group)
        self._topic = subscription.topic
        self._batch = subscription.batch
        self._check = subscription.check
        self._patience_s = subscription.drain.total_seconds() + MARGIN_S
        self._session_s = int(subscription.options.get(SESSION, SESSION_MS)) / 1000
        self._membership = GroupMembership(lambda: broker.now)
        self._member = 0
        """The id of the member; 0 before it joins."""
        self._generation = 0
        self._ours: dict[int, int | None] = {}
        """The next offset of each partition; None before the first read."""
        self._read: dict[int, int] = {}
        """The offset behind the last record or marker of each partition of which one was read."""
        self._committed: dict[int, int] = {}
        self._revoked: frozenset[int] = frozenset()
        """The partitions that are being revoked."""
        self._tasks: set[asyncio.Task[Any]] = set()

    def subscribe(self, listener: RebalanceListener, loop: asyncio.AbstractEventLoop) -> None:
        """See `GroupConsumer.subscribe`."""
        self._listener = listener
        self._loop = loop
        self._send_heartbeats()

    async def fetch(self, *, paused: bool, full: Collection[int], positions: Mapping[int, int]) -> list[Record]:
        """See `GroupConsumer.fetch`."""
        self._check.check(self._listed)
        self._membership.poll()
        news = {one: at for one, at in positions.items() if one in self._ours and self._committed.get(one) != at}
        if news and not self._membership.is_pending(news):
            self._spawn(self._loop, self._commit_and_confirm(news, self._identity))
        await self._follow_group()
        if paused:
            await asyncio.sleep(0.0)
            return []
        records = self._records(full) if self._network.is_up else []
        if not records:
            await self._network.pause(self._topic)
        return records

    async def seek(self, positions: Mapping[int, int]) -> Collection[int]:
        """See `GroupConsumer.seek`."""
        found = positions.keys() & self._ours.keys()
        for partition in found:
            self._ours[partition] = positions[partition]
            self._read.pop(partition, None)
            self._committed.pop(partition, None)
        return found

    async def next_offsets(self, partitions: Collection[int]) -> Mapping[int, int]:
        """See `GroupConsumer.next_offsets`."""
        return {partition: self._next_offset(partition) for partition in partitions if partition in self._ours}

    def proven_at(self, partition: int) -> float:
        """See `FencedGroupConsumer.proven_at`."""
        return self._membership.proven_at if partition in self._ours else NEVER

    async def prove(self, partition: int, position: int) -> bool:
        """See `FencedGroupConsumer.prove`."""
        if partition not in self._ours or partition in self._revoked:
            return False
        return await self._commit_and_confirm({partition: position}, self._identity)

    async def lag(self) -> int:
        """See `GroupConsumer.lag`."""
        return sum(
            max(0, self._broker.topics.log(self._place(number)).end - self._next_offset(number))
            for number in self._ours
        )

    def problem(self) -> str | None:
        """See `GroupConsumer.problem`."""
        return self._check.problem

    async def close(self) -> None:
        """See `GroupConsumer.close`. While the broker is away, it does not leave: its session will time out."""
        if self._network.is_up and not self._membership.has_pending and self._member:
            await self._revoke(frozenset(self._ours))
            self._group.leave(self._member, self._broker.now)
        self._next_heartbeat.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _send_heartbeats(self) -> None:
        if self._network.is_up:
            self._group.heartbeat(self._member, self._broker.now)
        self._next_heartbeat = self._loop.call_later(HEARTBEAT_S, self._send_heartbeats)

    async def _follow_group(self) -> None:
        """Take part in rebalances: join, lose what was lost, give back what others are to have, take what is free."""
        if not self._network.is_up:
            return
        if not self._group.heartbeat(self._member, self._broker.now):
            self._lose()
            self._member = self._group.join(self._topic, self._session_s, self._broker.now)
        if self._group.generation != self._generation:
            await self._take(self._group.member(self._member).assigned)
        if self._group.is_awaiting(self._member):
            self._group.rejoin(self._member, self._ours, self._broker.now)

    def _lose(self) -> None:
        if self._ours:
            self._listener.on_lost(list(self._ours))
            self._forget(frozenset(self._ours))

    async def _take(self, assigned: frozenset[int]) -> None:
        self._generation = self._group.generation
        if gone := self._ours.keys() - assigned:
            await self._revoke(frozenset(gone))
            self._group.rejoin(self._member, self._ours, self._broker.now)
        if new := sorted(assigned - self._ours.keys()):
            self._ours.update(dict.fromkeys(new))
            self._listener.on_assigned(new)

    async def _revoke(self, gone: frozenset[int]) -> None:
        self._revoked = gone
        try:
            async with asyncio.timeout(self._patience_s):
                positions = await self._listener.on_revoked(sorted(gone)) if gone else {}
                await self._commit(
                    {one: at for one, at in positions.items() if self._committed.get(one) != at}, self._identity
                )
        except TimeoutError:
            pass  # its requests will be repeated
        finally:
            self._revoked = frozenset()
        self._forget(gone)

    def _forget(self, gone: Collection[int]) -> None:
        for partition in gone:
            del self._ours[partition]
            self._read.pop(partition, None)
            self._committed.pop(partition, None)

    @property
    def _identity(self) -> tuple[int, int]:
        """The member and the generation of a request that is made now, however long it waits."""
        return self._member, self._generation

    async def _commit_and_confirm(self, positions: dict[int, int], identity: tuple[int, int]) -> bool:
        is_accepted = await self._commit(positions, identity)
        if is_accepted:
            self._listener.on_committed(positions)
        return is_accepted

    async def _commit(self, positions: dict[int, int], identity: tuple[int, int]) -> bool:
        if not positions:
            return True
        self._membership.begin_commit(positions)
        await self._network.pass_through()
        try:
            offsets = {self._place(one): GroupOffset(at) for one, at in positions.items()}
            self._group.commit(*identity, offsets)
        except RefusedError:
            self._listener.on_error()
            is_accepted = False
        else:
            self._committed.update(positions)
            is_accepted = True
        self._network.carry_out()
        await asyncio.sleep(self._network.latency_s() / 2)
        self._membership.end_commit(positions, accepted=is_accepted)
        return is_accepted

    def _records(self, full: Collection[int]) -> list[Record]:
        found: list[Record] = []
        topic = self._broker.topics.by_name.get(self._topic)
        for partition in sorted(self._ours):
            if partition in full or len(found) == self._batch or topic is None or partition >= len(topic.logs):
                continue
            place, log = self._place(partition), topic.logs[partition]
            position = fetch_position(log, self._position(partition))
            entries, following = log.read(position, self._batch - len(found))
            found += [
                Record(*place, entry.offset, entry.timestamp_ms, entry.key, entry.value, entry.headers)
                for entry in entries
            ]
            self._ours[partition] = following
            if following > position:
                self._read[partition] = following
        return found

    def _position(self, partition: int) -> int:
        position = self._ours[partition]
        return self._next_offset(partition) if position is None else position

    def _next_offset(self, partition: int) -> int:
        """Return the offset behind what was read; before the first read, the committed one, as the client does."""
        committed = self._group.offsets.get(self._place(partition))
        return self._read.get(partition, committed.offset if committed else 0)

    def _listed(self) -> Collection[str] | None:
        return set(self._broker.topics.by_name) if self._network.is_up else None

    def _place(self, partition: int) -> Partition:
        return Partition(self._topic, partition)

    def _spawn(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, object]) -> None:
        task = loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
