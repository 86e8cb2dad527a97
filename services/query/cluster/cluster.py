"""Runs this instance in the cluster: sends and receives announcements, follows the assignment, and routes."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from services.query.cluster.announcements import KafkaAnnouncements
from services.query.cluster.group import KafkaGroupMember
from services.query.cluster.instance import Instance
from services.query.cluster.leases import LeaseTiming
from services.query.cluster.routing import Member
from services.query.errors import DuplicateAddressError
from services.query.store import StatePartition
from services.runtime.broker_clock import BrokerClock

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from contracts import Suite
    from contracts.wire.announcement import Announcement
    from services.query.cluster.announcements import Announcements
    from services.query.cluster.group import GroupMember
    from services.query.cluster.instance import InstanceDependencies
    from services.query.cluster.membership import InstanceIdentity
    from services.query.cluster.routing import PartitionStatus
    from services.query.ingest import Ingestion, Restart
    from services.query.settings import QuerySettings
    from services.runtime.kafka.interfaces import Kafka

log = logging.getLogger(__name__)

STEP_S = 0.1
CATCH_UP_STEP_S = 0.01
"""The interval of steps while a lease waits for the end of its partition."""
ADVICE = (
    "this instance answers for what it began to read when they have been added; if no command adds them, run "
    "`stateloop rebuild --partitions N` again"
)
"""What the log says to an operator while partitions are being added."""
GROWING_S = 1.0
"""The pause before the number of partitions is requested again, while partitions are being added."""
RETRY_S = 0.2
"""The pause before end offsets that the brokers did not return are requested again."""
SILENCE_PER_LEASE = 1.25
"""Others wait a quarter longer than a lease lasts, so that clocks may drift a little."""
ANNOUNCEMENTS_PER_LEASE = 4
UNASSIGNED_SESSIONS = 2
"""The number of sessions after which a partition that is assigned to no instance gets one more replica."""


clock = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
"""Seconds of a clock that also advances while the machine sleeps, where there is one."""


class ClusterDependencies(NamedTuple):
    """The connections of an instance to the others and to the topics."""

    group: GroupMember
    announcements: Announcements
    ingestion: Ingestion


class Cluster:
    """Implements Routing. Announces this instance every `interval_s` seconds, and at each change."""

    def __init__(
        self,
        instance: Instance,
        dependencies: ClusterDependencies,
        interval_s: float,
        now: Callable[[], float] = clock,
    ) -> None:
        self.instance = instance
        self._group, self._announcements, self._ingestion = dependencies
        self._interval_s = interval_s
        self._now = now
        self._announced_at = float("-inf")
        self._wake = asyncio.Event()
        self._needs_end_offsets = asyncio.Event()
        self._needs_counts = asyncio.Event()

    @property
    def has_joined(self) -> bool:
        """Whether an announcement of this instance was read back."""
        return self.instance.lease_table.membership.contact is not None

    def partition_status(self, state: str, partition: int) -> PartitionStatus:
        """See `Routing.partition_status`."""
        return self.instance.partition_status(state, partition, self._now())

    def owners(self, state: str, partition: int) -> Sequence[Member]:
        """See `Routing.owners`."""
        found = (peer.announcement for peer in self.instance.owners(StatePartition(state, partition)))
        return [Member(one.instance, one.url) for one in found]

    def members(self) -> Sequence[Member]:
        """See `Routing.members`."""
        return self.instance.members()

    def has_read(self, end_offsets: Mapping[StatePartition, int]) -> bool:
        """See `Instance.has_read`."""
        return self.instance.has_read(end_offsets)

    def announced(self) -> Sequence[Announcement]:
        """Return what this instance has now, and the last announcements of the others."""
        now = self.instance.snapshot(self._now(), datetime.now(UTC))
        return [now, *(peer.announcement for peer in self.instance.lease_table.membership.peers())]

    async def end_offsets(self, state: str, partitions: Collection[int]) -> dict[int, int]:
        """See `Routing.end_offsets`."""
        found = await self._ingestion.end_offsets([StatePartition(state, number) for number in partitions])
        return {partition.number: end for partition, end in found.items()}

    def restarted(self, restart: Restart) -> None:
        """See `ChangeListener.restarted`."""
        self.instance.restarted(restart.partition)
        self._wake.set()

    async def run(self) -> None:
        """Stay in the cluster until cancelled, then leave it.

        Raises DuplicateInstanceError, DuplicateAddressError, PartitionsChangedError, KafkaClientError.
        """
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._announcements.run(self._receive))
            tasks.create_task(self._group.run(self._assign))
            tasks.create_task(self._set_targets())
            tasks.create_task(self._check_targets())
            try:
                await self._step()
            finally:  # first of all: the others take over as soon as they have read it
                await self._announcements.leave(self.instance.leave())

    async def _step(self) -> None:
        while True:
            now = self._now()
            if self.instance.address_taken_by is not None:
                raise DuplicateAddressError(self.instance.me.url, self.instance.address_taken_by)
            if self.instance.step(now) or now - self._announced_at >= self._interval_s:
                self._announced_at = now
                self._announcements.send(self.instance.announce(now, datetime.now(UTC)))
            if self.instance.open_targets():
                self._needs_end_offsets.set()
            if self.instance.unchecked_targets():
                self._needs_counts.set()
            self._wake.clear()
            try:
                async with asyncio.timeout(CATCH_UP_STEP_S if self.instance.is_catching_up else STEP_S):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _set_targets(self) -> None:
        while True:
            await self._needs_end_offsets.wait()
            self._needs_end_offsets.clear()
            targets = self.instance.open_targets()
            end_offsets = await self._ingestion.end_offsets(targets)
            for partition, end_offset in end_offsets.items():
                for target in targets[partition]:
                    target.offset = end_offset
            self._wake.set()
            if targets.keys() - end_offsets.keys():
                await asyncio.sleep(RETRY_S)

    async def _check_targets(self) -> None:
        noted: frozenset[str] = frozenset()
        while True:
            await self._needs_counts.wait()
            self._needs_counts.clear()
            targets = self.instance.unchecked_targets()
            growing = frozenset(await self._ingestion.growing(targets))
            if growing and growing != noted:
                facts = {"states": sorted(growing), "advice": ADVICE}
                log.warning("partitions are being added, or their number is unknown", extra={"facts": facts})
            noted = growing
            for target in [one for state in targets.keys() - growing for one in targets[state]]:
                target.is_whole = True
            self._wake.set()
            if growing:
                await asyncio.sleep(GROWING_S)

    def _receive(self, announcements: Sequence[Announcement]) -> None:
        now = self._now()
        for announcement in announcements:
            self.instance.receive(announcement, now)
        self._wake.set()

    def _assign(self, partitions: Collection[StatePartition]) -> None:
        names = sorted(f"{partition.state}/{partition.number}" for partition in partitions)
        log.info("partitions", extra={"facts": {"assigned": names}})
        self.instance.assigned = self.instance.in_use(partitions)
        self._wake.set()


def group_name(settings: QuerySettings, suite: Suite) -> str:
    """Return the consumer group of the instances."""
    return settings.group or f"{'-'.join(one.name for one in suite.applications)}-query"


def build_cluster(  # noqa: PLR0913  # what a test replaces
    settings: QuerySettings,
    suite: Suite,
    me: InstanceIdentity,
    dependencies: InstanceDependencies,
    kafka: Kafka,
    *,
    now: Callable[[], float] = clock,
) -> Cluster:
    """Return the cluster with this instance in it, which joins when it runs. An event loop runs already.

    The instances of a suite announce themselves in the topic of its first application.
    """
    lease, session = settings.lease.total_seconds(), settings.session_timeout.total_seconds()
    group = group_name(settings, suite)
    member = KafkaGroupMember(
        kafka,
        group=group,
        instance=me.instance,
        session=session,
        topics={state.topic: state.name for state in dependencies.states.values()},
    )
    topic, broker_clock = suite.applications[0].topics.instances, BrokerClock(now)
    announcements = KafkaAnnouncements(kafka, topic=topic, group=group, timeout=lease, broker_clock=broker_clock)
    timing = LeaseTiming(lease, lease * SILENCE_PER_LEASE, unassigned_s=session * UNASSIGNED_SESSIONS)
    instance = Instance(me, timing, dependencies, settings.replicas, broker_clock)
    clients = ClusterDependencies(member, announcements, dependencies.ingestion)
    return Cluster(instance, clients, lease / ANNOUNCEMENTS_PER_LEASE, now)
