"""Membership: what one instance knows of the others from their announcements, in the order of the topic.

Pure: the time is passed in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from services.query.store import StatePartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contracts.wire.announcement import AnnouncedPart, Announcement


class InstanceIdentity(NamedTuple):
    """The identity of an instance. `store` and `run` are as in its announcements."""

    instance: str
    url: str
    store: str
    run: int


class Peer:
    """Another instance, by its last announcement; `received_at` is by this instance's clock.

    `after_contact`: the announcement was written after this instance had announced itself.
    """

    __slots__ = ("after_contact", "announcement", "partitions", "received_at")

    def __init__(self, announcement: Announcement, received_at: float, *, after_contact: bool) -> None:
        self.announcement = announcement
        self.received_at = received_at
        self.after_contact = after_contact
        self.partitions = dict(_partitions(announcement))

    def is_ready(self, partition: StatePartition) -> bool:
        """Return whether it could answer for the partition."""
        return partition in self.partitions and self.partitions[partition].ready

    def is_assigned(self, partition: StatePartition) -> bool:
        """Return whether the consumer group assigned the partition to it."""
        return partition in self.partitions and self.partitions[partition].assigned

    def has_lease(self, partition: StatePartition) -> bool:
        """Return whether it announces a lease on the partition."""
        return partition in self.partitions and self.partitions[partition].held

    def lease_epoch(self, partition: StatePartition) -> int:
        """Return the epoch of its lease; 0 if it has none."""
        return self.partitions[partition].term if self.has_lease(partition) else 0


class Membership:
    """The other instances. One without an announcement for `silence` seconds is gone.

    The silence is measured up to this instance's own last announcement that it read back: while the broker is down no
    announcement can arrive, and no instance is gone.
    """

    def __init__(self, me: InstanceIdentity, silence: float) -> None:
        self._me = me
        self._silence = silence
        self._peers: dict[str, Peer] = {}
        self._lease_epochs: dict[StatePartition, int] = {}
        self.contact: float | None = None
        """When this instance's last announcement that was read back was sent; None before the first."""

    def receive(self, announcement: Announcement, at: float) -> Peer | None:
        """Note another instance's announcement; return None if it has nothing new of a live instance."""
        for partition, one in _partitions(announcement):
            self._lease_epochs[partition] = max(one.term, self.lease_epoch(partition))
        if announcement.store == self._me.store:
            return None  # an earlier run of this instance, which has ended: this process has its folder
        known = self._peers.get(announcement.store)
        if known is not None and _sequence(announcement) <= _sequence(known.announcement):
            return None  # a duplicate, or late
        peer = Peer(announcement, at, after_contact=self.contact is not None)
        self._peers[announcement.store] = peer
        return None if announcement.leaving else peer

    def lease_epoch(self, partition: StatePartition) -> int:
        """Return the greatest announced epoch of a lease on the partition, also of instances that are gone."""
        return self._lease_epochs.get(partition, 0)

    def knows(self, announcement: Announcement) -> bool:
        """Return whether an announcement of this run of the instance was received since it was last gone."""
        known = self._peers.get(announcement.store)
        return known is not None and known.announcement.run == announcement.run

    def peers(self) -> list[Peer]:
        """Return the live instances, by name; none before the first contact."""
        live = (peer for peer in self._peers.values() if not (self._is_gone(peer) or peer.announcement.leaving))
        return sorted(live, key=lambda peer: (peer.announcement.instance, peer.announcement.store))

    def remove_gone(self) -> list[str]:
        """Remove the instances that are gone, and return their names."""
        gone = [store for store, peer in self._peers.items() if self.contact is not None and self._is_gone(peer)]
        return [self._peers.pop(store).announcement.instance for store in gone]

    def _is_gone(self, peer: Peer) -> bool:
        return self.contact is None or self.contact - peer.received_at >= self._silence


def _sequence(announcement: Announcement) -> tuple[int, int]:
    return announcement.run, announcement.number


def _partitions(announcement: Announcement) -> Iterator[tuple[StatePartition, AnnouncedPart]]:
    for name, state in announcement.states.items():
        for part in state.parts:
            yield StatePartition(name, part.partition), part
