"""The decisions of one instance: what it reads, announces and answers for. No I/O: the time is passed in."""

from __future__ import annotations

import logging
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

from contracts.records.record import timestamp_ms
from contracts.records.state_record import AHEAD_MS
from contracts.wire.announcement import AnnouncedPart, AnnouncedState, Announcement
from services.query.cluster.leases import LeaseTable, Replica, ReplicaTarget
from services.query.cluster.placement import select_standbys
from services.query.cluster.routing import Member, PartitionStatus, Role
from services.query.errors import PartitionsChangedError
from services.query.store import StatePartition
from services.query.store.buckets import clock_watermark

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from contracts.model.named_state import NamedState
    from services.query.cluster.leases import CatchUpTarget, LeaseTiming
    from services.query.cluster.membership import InstanceIdentity, Peer
    from services.query.ingest import Ingestion
    from services.runtime.broker_clock import BrokerClock

log = logging.getLogger(__name__)


class WatermarkStore(Protocol):
    """The part of a store that is announced to other instances."""

    def watermark(self) -> int:
        """See `Store.watermark`."""

    def advance_watermark(self, watermark: int) -> None:
        """See `Store.advance_watermark`."""


class InstanceDependencies(NamedTuple):
    """The states, what reads them, and their stores. `now` is the time of day, in milliseconds since 1970."""

    states: Mapping[str, NamedState]
    ingestion: Ingestion
    stores: Mapping[str, WatermarkStore]
    now: Callable[[], int]


class Instance:
    """One instance among others. `step` must be called ten times a second, and after each other change."""

    def __init__(  # the parts that it connects
        self,
        me: InstanceIdentity,
        timing: LeaseTiming,
        dependencies: InstanceDependencies,
        replicas: int,
        broker_clock: BrokerClock,
    ) -> None:
        self.me = me
        self.lease_table = LeaseTable(me, timing)
        self.assigned: set[StatePartition] = set()
        self._states = dependencies.states
        self._ingestion = dependencies.ingestion
        self._stores = dependencies.stores
        self._now = dependencies.now
        self._broker_clock = broker_clock
        self._all = [StatePartition(name, at) for name, one in self._states.items() for at in range(one.partitions)]
        self._in_use = frozenset(self._all)
        self._replicas = replicas
        self._unassigned_s = timing.unassigned_s
        self._unassigned_since: dict[StatePartition, float] = {}
        self._targets: dict[StatePartition, ReplicaTarget] = {}
        self._number = 0
        self._announced: object = None
        self._rejected: set[tuple[str, str]] = set()
        self._same_address: dict[str, int] = {}
        """The announcements after this instance's first one, of each store that had announced its address before."""
        self.address_taken_by: str | None = None
        """The name of an earlier instance that is alive, and has the address of this one."""

    def in_use(self, partitions: Collection[StatePartition]) -> set[StatePartition]:
        """Return those of the partitions that have keys. While some are being added, the new ones have none yet."""
        return set(self._in_use.intersection(partitions))

    def receive(self, announcement: Announcement, at: float) -> None:
        """Handle an announcement of this instance or of another. Leases that it takes away are released at once.

        Raises PartitionsChangedError.
        """
        membership, is_peer = self.lease_table.membership, self.me.store != announcement.store
        after_contact = membership.contact is not None and is_peer  # it follows one of ours in the topic
        if is_peer and announcement.url == self.me.url and not announcement.leaving:
            self._check_address(announcement, is_alive=after_contact)
        if after_contact and not membership.knows(announcement):
            self._announced = None  # an instance that joins, or returns, needs our state at once
        self.lease_table.receive(announcement, at)
        self._take_watermarks(announcement, after_contact=after_contact)
        if after_contact:
            self._check_partitions(announcement)

    def _check_address(self, announcement: Announcement, *, is_alive: bool) -> None:
        """Note an instance of the same address. The one that announced itself later leaves.

        One announcement may have been under way when its instance was killed, and this one started in its place.
        """
        if not is_alive:
            self._same_address[announcement.store] = 0
        elif announcement.store in self._same_address:
            self._same_address[announcement.store] += 1
            if self._same_address[announcement.store] > 1:
                self.address_taken_by = announcement.instance

    def _take_watermarks(self, announcement: Announcement, *, after_contact: bool) -> None:
        """Advance the watermarks to the announced ones; without contact, no further than the broker's clock gives.

        The rest may come from records that are no longer on the topics; live instances have seen the others too. A
        watermark that no current record could give is rejected, because it would expire all windows.
        """
        limit = self._now() + AHEAD_MS
        for name, state in announcement.states.items():
            store = self._stores.get(name)
            if store is None or state.watermark <= store.watermark():
                continue
            if state.watermark <= limit:
                by_clock = clock_watermark(self._states[name], timestamp_ms(self._broker_clock.now()))
                expired = 0 if by_clock is None else min(state.watermark, by_clock)
                store.advance_watermark(state.watermark if after_contact else expired)
            elif (name, announcement.store) not in self._rejected:
                self._rejected.add((name, announcement.store))
                facts = {"instance": announcement.instance, "state": name, "watermark": state.watermark}
                log.warning("a watermark is a day ahead of the clock, and is rejected", extra={"facts": facts})

    def _check_partitions(self, announcement: Announcement) -> None:
        """Raise PartitionsChangedError if a live instance places keys by more partitions: this one starts again."""
        for state, announced in self._same_topics(announcement):
            if announced.partitions > state.partitions:
                raise PartitionsChangedError(state.topic, state.partitions, announced.partitions)

    def _placed_by_fewer(self) -> set[str]:
        """Return the states whose keys a live instance places by fewer partitions: it may answer for any key."""
        return {
            state.name
            for peer in self.lease_table.membership.peers()
            for state, announced in self._same_topics(peer.announcement)
            if announced.partitions < state.partitions
        }

    def _same_topics(self, announcement: Announcement) -> Iterator[tuple[NamedState, AnnouncedState]]:
        """Yield the states that an instance reads from the same topics as this one, as they are here and there."""
        for name, announced in announcement.states.items():
            state = self._states.get(name)
            if state is not None and state.topic == announced.topic:
                yield state, announced

    def restarted(self, partition: StatePartition) -> None:
        """Release the partition, which is read from its beginning again, until it has caught up."""
        if partition in self._targets:
            self._targets[partition] = ReplicaTarget()
        self.lease_table.leases.pop(partition, None)

    def step(self, now: float) -> bool:
        """Update what is read and leased; return whether there is a change to announce at once."""
        self.lease_table.tick(now)
        self.lease_table.membership.remove_gone()
        self._assign(now)
        replicas = {one: Replica(one in self.assigned, self._is_ready(one, to)) for one, to in self._targets.items()}
        self.lease_table.update(replicas, now, self._placed_by_fewer())
        self._update_statuses()
        return self._announceable(now) != self._announced

    def has_read(self, end_offsets: Mapping[StatePartition, int]) -> bool:
        """Return whether all these partitions that it reads are read up to these offsets.

        It answers for another one only when it has read what the topic has then.
        """
        read = {one: self._ingestion.progress(one) for one in self._targets.keys() & end_offsets.keys()}
        return all(found is not None and found.position >= end_offsets[one] for one, found in read.items())

    @property
    def is_catching_up(self) -> bool:
        """Whether a lease waits for this instance to catch up; then `step` is called more often."""
        return any(lease.status is None for lease in self.lease_table.leases.values())

    def open_targets(self) -> dict[StatePartition, list[CatchUpTarget]]:
        """Return the partitions whose end offsets are needed now, with the catch-up targets that receive them."""
        targets: list[tuple[StatePartition, CatchUpTarget]] = [
            (partition, target) for partition, target in self._targets.items() if target.offset is None
        ]
        targets += [
            (partition, lease.catch_up)
            for partition, lease in self.lease_table.leases.items()
            if lease.confirmed and lease.catch_up.offset is None
        ]
        found: dict[StatePartition, list[CatchUpTarget]] = {}
        for partition, target in targets:
            found.setdefault(partition, []).append(target)
        return found

    def unchecked_targets(self) -> dict[str, list[ReplicaTarget]]:
        """Return, by state, the targets that are reached and wait for a check that no partitions are being added."""
        found: dict[str, list[ReplicaTarget]] = {}
        for partition, target in self._targets.items():
            if target.reached and not target.is_whole:
                found.setdefault(partition.state, []).append(target)
        return found

    def announce(self, now: float, ts: datetime) -> Announcement:
        """Return the announcement to write now. It includes the watermarks of the clock, so all instances get them.

        This one gets them when it reads the announcement back: an instance that claims its partitions has read it then.
        """
        self._number += 1
        self._announced = self._announceable(now)
        self.lease_table.sent(self._number, now)
        return self._announcement(ts, self._at_clock(self._announced_states(now)))

    def snapshot(self, now: float, ts: datetime) -> Announcement:
        """Return the same for clients of this instance: with only the leases for which it answers now."""
        return self._announcement(ts, self._announced_states(now, only_answering=True))

    def leave(self) -> Announcement:
        """Release all leases, and return the last announcement: what has expired here has expired elsewhere."""
        self._number += 1
        self.lease_table.leases.clear()
        return self._announcement(datetime.now(UTC), self._announced_states(math.inf), leaving=True)

    def partition_status(self, state: str, number: int, now: float) -> PartitionStatus:
        """Return the role and lag of this instance for a partition now."""
        partition = StatePartition(state, number)
        lease = self.lease_table.leases.get(partition)
        if lease is not None and lease.status is not None and self.lease_table.is_valid(now):
            return lease.status
        return self._status_without_answers(partition, has_lease=lease is not None)

    def owners(self, partition: StatePartition) -> list[Peer]:
        """Return the others that may answer for it: with a lease first, then assigned, then with a replica."""
        peers = [peer for peer in self.lease_table.membership.peers() if peer.partitions.get(partition)]

        def rank(one: Peer) -> tuple[bool, int, bool, bool]:
            return (
                not one.has_lease(partition),
                -one.lease_epoch(partition),
                not one.is_assigned(partition),
                not one.is_ready(partition),
            )

        return sorted(peers, key=rank)

    def members(self) -> list[Member]:
        """Return this instance and the other live ones."""
        peers = [peer.announcement for peer in self.lease_table.membership.peers()]
        return [Member(self.me.instance, self.me.url), *(Member(one.instance, one.url) for one in peers)]

    def _assign(self, now: float) -> None:
        wanted = self._wanted(now)
        for partition in sorted(self._targets.keys() - wanted):
            self._ingestion.unassign(partition)
            del self._targets[partition]
        for partition in sorted(wanted - self._targets.keys()):
            self._ingestion.assign(partition)
            self._targets[partition] = ReplicaTarget()

    def _wanted(self, now: float) -> set[StatePartition]:
        membership = self.lease_table.membership
        peers = membership.peers()
        stores = tuple(sorted({self.me.store, *(peer.announcement.store for peer in peers)}))
        wanted = self.assigned | self.lease_table.leases.keys()
        if membership.contact is None:
            return wanted
        unassigned = self._unassigned(peers, now)
        for one in self._all if self._replicas > 1 else unassigned:
            replicas = self._replicas + (one in unassigned)
            if one not in wanted and self.me.store in select_standbys(
                one, _assigned_store(one, peers), stores, replicas
            ):
                wanted.add(one)
        return wanted

    def _unassigned(self, peers: Sequence[Peer], now: float) -> set[StatePartition]:
        """Return the partitions that the group has not assigned for too long.

        It assigns nothing new to a member that starts again within its session, for example after partitions were
        added.
        """
        assigned = self.assigned.union(
            *({one for one, part in peer.partitions.items() if part.assigned} for peer in peers)
        )
        since = self._unassigned_since
        self._unassigned_since = {one: since.get(one, now) for one in self._all if one not in assigned}
        return {one for one, at in self._unassigned_since.items() if now - at >= self._unassigned_s}

    def _is_ready(self, partition: StatePartition, target: ReplicaTarget) -> bool:
        progress = self._ingestion.progress(partition)
        if progress is not None:
            target.check(progress.position)
        return target.is_ready

    def _update_statuses(self) -> None:
        for partition, lease in self.lease_table.leases.items():
            progress = self._ingestion.progress(partition)
            if progress is not None and lease.catch_up.check(progress.position):
                lease.status = PartitionStatus(Role.OWNER if lease.assigned else Role.STANDBY, progress.lag)

    def _status_without_answers(self, partition: StatePartition, *, has_lease: bool) -> PartitionStatus:
        progress = self._ingestion.progress(partition)
        lag = progress.lag if progress else 0
        peers = [peer for peer in self.lease_table.membership.peers() if partition in peer.partitions]
        if has_lease or partition in self.assigned:
            others = bool(peers) if has_lease else any(peer.has_lease(partition) for peer in peers)
            return PartitionStatus(Role.ELSEWHERE if others else Role.CATCHING_UP, lag)
        return PartitionStatus(Role.ELSEWHERE, lag)

    def _announceable(self, now: float) -> object:
        """Return what other instances act on."""
        return (
            self.lease_table.is_valid(now),
            self.lease_table.has_all_watermarks,
            tuple(
                (partition, partition in self.assigned, target.is_ready, partition in self.lease_table.leases)
                for partition, target in self._targets.items()
            ),
        )

    def _announced_states(self, now: float, *, only_answering: bool = False) -> dict[str, AnnouncedState]:
        table = self.lease_table
        valid = table.is_valid(now)
        can_take_over = valid and table.has_all_watermarks  # others release only for an instance that can
        leases = {one: it for one, it in table.leases.items() if not only_answering or (it.status and valid)}
        partitions: dict[str, list[AnnouncedPart]] = {}
        for partition, target in sorted(self._targets.items(), key=lambda item: item[0]):
            progress, lease = self._ingestion.progress(partition), leases.get(partition)
            partitions.setdefault(partition.state, []).append(
                AnnouncedPart(
                    partition=partition.number,
                    assigned=partition in self.assigned,
                    ready=target.is_ready and can_take_over,
                    held=lease is not None,
                    term=lease.epoch if lease is not None else 0,
                    position=progress.position if progress else 0,
                    lag=progress.lag if progress else 0,
                )
            )
        return {
            name: AnnouncedState(
                watermark=store.watermark(),
                topic=self._states[name].topic,
                partitions=self._states[name].partitions,
                parts=tuple(partitions.get(name, ())),
            )
            for name, store in self._stores.items()
        }

    def _at_clock(self, states: Mapping[str, AnnouncedState]) -> dict[str, AnnouncedState]:
        """Return the states with the watermarks of the clock, by which their windows also expire while no record comes.

        The clock is the earlier of this instance's and the broker's, which the announcements show: live windows would
        expire at all instances by one clock that is ahead.
        """
        now = min(self._now(), timestamp_ms(self._broker_clock.now()))
        watermarks = {name: clock_watermark(self._states[name], now) or 0 for name in states}
        return {
            name: one.model_copy(update={"watermark": max(one.watermark, watermarks[name])})
            for name, one in states.items()
        }

    def _announcement(self, ts: datetime, states: dict[str, AnnouncedState], *, leaving: bool = False) -> Announcement:
        me = self.me
        return Announcement(
            instance=me.instance,
            store=me.store,
            run=me.run,
            url=me.url,
            number=max(1, self._number),
            ts=ts,
            leaving=leaving,
            states=states,
        )


def _assigned_store(partition: StatePartition, peers: Iterable[Peer]) -> str | None:
    return next((peer.announcement.store for peer in peers if peer.is_assigned(partition)), None)
