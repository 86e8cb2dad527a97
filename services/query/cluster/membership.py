"""What one instance knows of the others from their announcements: pure, in the order of the topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from services.query.ingest.ingestion import Part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contracts.wire.announcement import AnnouncedPart, Announcement


class Identity(NamedTuple):
    """Who this instance is. `store` and `run` are as in its announcements."""

    instance: str
    url: str
    store: str
    run: int


class Peer:
    """Another instance, by its last announcement. `heard` is when this instance read that, by its own clock.

    `met`: it was written when this instance had announced itself already.
    """

    __slots__ = ("announcement", "heard", "met", "parts")

    def __init__(self, announcement: Announcement, heard: float, *, met: bool) -> None:
        self.announcement = announcement
        self.heard = heard
        self.met = met
        self.parts = dict(_parts(announcement))

    def is_ready(self, part: Part) -> bool:
        """Whether it could answer for the partition."""
        return part in self.parts and self.parts[part].ready

    def is_assigned(self, part: Part) -> bool:
        """Whether the group gave it the partition."""
        return part in self.parts and self.parts[part].assigned

    def holds(self, part: Part) -> bool:
        """Whether it says that it answers for the partition."""
        return part in self.parts and self.parts[part].held

    def term(self, part: Part) -> int:
        """Of its hold; 0 if it has none."""
        return self.parts[part].term if self.holds(part) else 0


class View:
    """The other instances. One that was not heard for `silence` seconds is gone.

    How long that is counts up to this instance's own last announcement that it read back: while the broker is away
    nobody can be heard, and nobody is gone.
    """

    def __init__(self, me: Identity, silence: float) -> None:
        self._me = me
        self._silence = silence
        self._peers: dict[str, Peer] = {}
        self._terms: dict[Part, int] = {}
        self.contact: float | None = None
        """When the last of our announcements that was read back was sent; None before the first."""

    def hear(self, announcement: Announcement, at: float) -> Peer | None:
        """Take note of another's announcement; None: it tells nothing new of anybody who is there."""
        for part, one in _parts(announcement):
            self._terms[part] = max(one.term, self.term(part))
        if announcement.store == self._me.store:
            return None  # an earlier run of ours, which has ended, for we have its folder
        known = self._peers.get(announcement.store)
        if known is not None and _place(announcement) <= _place(known.announcement):
            return None  # written twice, or late
        peer = self._peers[announcement.store] = Peer(announcement, at, met=self.contact is not None)
        return None if announcement.leaving else peer

    def term(self, part: Part) -> int:
        """The greatest that anybody ever had of it, of whom was heard; also of who is gone."""
        return self._terms.get(part, 0)

    def knows(self, announcement: Announcement) -> bool:
        """Whether this process of the instance was heard, since it was gone last."""
        known = self._peers.get(announcement.store)
        return known is not None and known.announcement.run == announcement.run

    def peers(self) -> list[Peer]:
        """Those who are there, by name; nobody before the first contact."""
        there = (peer for peer in self._peers.values() if not (self._is_gone(peer) or peer.announcement.leaving))
        return sorted(there, key=lambda peer: (peer.announcement.instance, peer.announcement.store))

    def sweep(self) -> list[str]:
        """Forget who is gone; gives their names."""
        gone = [store for store, peer in self._peers.items() if self.contact is not None and self._is_gone(peer)]
        return [self._peers.pop(store).announcement.instance for store in gone]

    def _is_gone(self, peer: Peer) -> bool:
        return self.contact is None or self.contact - peer.heard >= self._silence


def _place(announcement: Announcement) -> tuple[int, int]:
    return announcement.run, announcement.number


def _parts(announcement: Announcement) -> Iterator[tuple[Part, AnnouncedPart]]:
    for name, state in announcement.states.items():
        for one in state.parts:
            yield Part(name, one.partition), one
