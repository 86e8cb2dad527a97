"""The leases of this instance: for which partitions it may answer, and until when. Pure: the time is passed in.

The topic of announcements is a lock that all instances read in one order. The first live instance that announces a
lease on a free partition has it, until it announces itself without the lease or falls silent. The consumer group only
decides which instance should have it. So two instances never answer for a partition at the same time, whatever the
group believes:

- An announcement that its sender has read back lets it answer for `lease_s` seconds from when it was sent.
- The others consider an instance gone `silence_s` seconds after they read its last announcement; that is longer.
- An instance that reads of another's lease on the same partition releases its own, unless its own is confirmed and
  valid: then the other, which reads the announcements in the same order, releases.
- Each lease has an epoch, one greater than all epochs announced before. If a clock has misled an instance (that of a
  paused virtual machine stops), two have confirmed leases: the one with the smaller epoch releases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from services.query.cluster.membership import Membership
from services.query.cluster.placement import select_owner

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from contracts.wire.announcement import Announcement
    from services.query.cluster.membership import InstanceIdentity, Peer
    from services.query.cluster.routing import PartitionStatus
    from services.query.store import StatePartition

DISCARD_AFTER = 10
"""An announcement that was not read back is discarded after so many times the silence."""


class LeaseTiming(NamedTuple):
    """In seconds. After `pause_s` without a tick this process cannot be sure any more that it is alone.

    A partition that the group has assigned to no instance for `unassigned_s` gets one more replica.
    """

    lease_s: float
    silence_s: float
    pause_s: float = 1.0
    unassigned_s: float = float("inf")


class Replica(NamedTuple):
    """A partition that this instance reads: whether it is assigned here, and whether it has caught up."""

    assigned: bool
    ready: bool


class CatchUpTarget:
    """An end offset that was requested after a certain moment, and that the position must reach once."""

    __slots__ = ("offset", "reached")

    def __init__(self) -> None:
        self.offset: int | None = None
        """None until the brokers have returned it."""
        self.reached = False

    def check(self, position: int) -> bool:
        """Return whether the target is reached, with the position that is current now."""
        if not self.reached and self.offset is not None:
            self.reached = position >= self.offset
        return self.reached


class ReplicaTarget(CatchUpTarget):
    """The target of a partition that is read here.

    Records may have been moved to other partitions before they were read, if partitions were being added. So the
    partition is ready when the number of partitions, requested after the end was reached, is the one in use.
    """

    __slots__ = ("is_whole",)

    def __init__(self) -> None:
        super().__init__()
        self.is_whole = False
        """Whether no partitions were being added after the end was reached."""

    @property
    def is_ready(self) -> bool:
        """Whether all records were read that an earlier reader can have read."""
        return self.reached and self.is_whole


class Lease:
    """The right to answer for a partition, once an announcement of it was read back."""

    __slots__ = ("assigned", "catch_up", "confirmed", "epoch", "first_announcement", "status")

    def __init__(self, *, assigned: bool, epoch: int) -> None:
        self.epoch = epoch
        self.first_announcement: int | None = None
        """The number of the first announcement with this lease; None before it is sent."""
        self.confirmed = False
        self.assigned = assigned
        """Whether the group assigned the partition to this instance, and to no other since."""
        self.catch_up = CatchUpTarget()
        """The end offset after the confirmation: before it, entries may be missing that an earlier owner returned."""
        self.status: PartitionStatus | None = None
        """Role and lag, once the catch-up target is reached."""


class LeaseTable:
    """All leases of this instance."""

    def __init__(self, me: InstanceIdentity, timing: LeaseTiming) -> None:
        self._me = me
        self._timing = timing
        self._sent: dict[int, float] = {}
        self._read_back = 0
        self._valid_until = float("-inf")
        self._unbroken = False
        self._ticked = float("-inf")
        self.membership = Membership(me, timing.silence_s)
        self.leases: dict[StatePartition, Lease] = {}

    def tick(self, now: float) -> None:
        """Called ten times a second: a gap shows that the process was paused, and may have been replaced."""
        if now - self._ticked >= self._timing.pause_s:
            self._unbroken = False
        self._ticked = now

    def sent(self, number: int, at: float) -> None:
        """Note that an announcement of the current leases is sent."""
        keep_s = DISCARD_AFTER * self._timing.silence_s
        self._sent = {earlier: when for earlier, when in self._sent.items() if at - when < keep_s} | {number: at}
        for lease in self.leases.values():
            if lease.first_announcement is None:
                lease.first_announcement = number

    def receive(self, announcement: Announcement, at: float) -> None:
        """Handle an announcement from the topic, of this instance or of another."""
        me = self._me
        peer = self.membership.receive(announcement, at)
        if (announcement.store, announcement.run) == (me.store, me.run):
            self._receive_own(announcement.number, at)
        elif peer is not None:
            self._release_to(peer, at)

    def is_valid(self, now: float) -> bool:
        """Return whether no other instance can have taken over a confirmed lease.

        For a single instance this stays true while the broker is down, as long as the process is not paused.
        """
        if now < self._valid_until:
            return True
        alone = self._unbroken and now - self._ticked < self._timing.pause_s and not self.membership.peers()
        return alone and self.membership.contact is not None

    @property
    def has_all_watermarks(self) -> bool:
        """Whether every other instance has announced itself since this one did, and so its watermarks are known.

        Without them an instance that takes a partition would return keys as live that another returned as expired.
        """
        return all(peer.after_contact for peer in self.membership.peers())

    def update(
        self, replicas: Mapping[StatePartition, Replica], now: float, placed_by_fewer: Collection[str] = ()
    ) -> bool:
        """Release what another instance should have, take what is due here; return whether anything changed.

        No lease is taken of the states that are `placed_by_fewer` partitions at an instance that is alive.
        """
        peers = self.membership.peers()
        before = set(self.leases)
        for partition in before:
            replica = replicas.get(partition)
            if replica is None or not replica.ready or _should_release(partition, replica, peers):
                del self.leases[partition]
            elif replica.assigned:
                self.leases[partition].assigned = True
            elif any(peer.is_assigned(partition) for peer in peers):
                self.leases[partition].assigned = False
        if now < self._valid_until and self.has_all_watermarks:
            for partition, replica in replicas.items():
                if partition in self.leases or partition.state in placed_by_fewer or not replica.ready:
                    continue
                if self._is_due(partition, replica, peers):
                    epoch = 1 + self.membership.lease_epoch(partition)
                    self.leases[partition] = Lease(assigned=replica.assigned, epoch=epoch)
        return before != set(self.leases)

    def _receive_own(self, number: int, at: float) -> None:
        if number <= self._read_back or number not in self._sent:
            return
        self._read_back = number
        self.membership.contact = sent = self._sent[number]
        self._sent = {later: when for later, when in self._sent.items() if later > number}
        self._valid_until = sent + self._timing.lease_s
        self._unbroken = at < self._valid_until
        for lease in self.leases.values():
            lease.confirmed |= lease.first_announcement is not None and lease.first_announcement <= number

    def _release_to(self, peer: Peer, at: float) -> None:
        for partition, lease in list(self.leases.items()):
            prevails = lease.confirmed and at < self._valid_until and peer.lease_epoch(partition) <= lease.epoch
            if peer.has_lease(partition) and not prevails:
                del self.leases[partition]

    def _is_due(self, partition: StatePartition, replica: Replica, peers: list[Peer]) -> bool:
        if any(peer.has_lease(partition) for peer in peers):
            return False
        ready = {peer.announcement.store for peer in peers if peer.is_ready(partition)} | {self._me.store}
        assigned = {peer.announcement.store for peer in peers if peer.is_assigned(partition)}
        if replica.assigned:
            assigned |= {self._me.store}
        return select_owner(partition, ready, assigned) == self._me.store


def _should_release(partition: StatePartition, replica: Replica, peers: list[Peer]) -> bool:
    """Return whether a standby releases its lease: as soon as the assigned instance is ready."""
    return not replica.assigned and any(peer.is_assigned(partition) and peer.is_ready(partition) for peer in peers)
