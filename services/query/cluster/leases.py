"""Which partitions this instance answers for, and for how long: pure, the time is passed in.

The topic of announcements is a lock that all instances read in one order. A partition is held by whoever announced it
first while no one who is there held it; it is let go by an announcement without it, or by silence. The group only says
who should hold it. So two instances never answer for one partition at a time, whatever the group believes:

- An announcement that was read back lets its sender answer for `lease` seconds from when it was sent.
- Others take a silent one for gone after `silence` seconds, which is longer, from when they read its last announcement.
- Who reads that another holds a partition too gives its own hold up, unless that was confirmed and its lease is valid:
  then the other, who reads them in the same order, gives up.
- Each hold has a term, one more than all that were heard of. Should a clock have misled an instance (that of a virtual
  machine stands still with it), two have confirmed holds: the one of the smaller term gives up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from services.query.cluster.catch_up import Barrier
from services.query.cluster.membership import View
from services.query.cluster.placement import first

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contracts.wire.announcement import Announcement
    from services.query.cluster.membership import Identity, Peer
    from services.query.cluster.routing import Standing
    from services.query.ingest.ingestion import Part

FORGOTTEN = 10
"""After how many times the silence an announcement that was not read back is forgotten."""


class Terms(NamedTuple):
    """In seconds. `pause` is how long this process may stand still before it is no longer sure to be alone."""

    lease: float
    silence: float
    pause: float = 1.0


class Copy(NamedTuple):
    """What this instance has of a partition that it follows."""

    assigned: bool
    ready: bool


class Hold:
    """A partition that this instance answers for, once an announcement that says so was read back."""

    __slots__ = ("barrier", "confirmed", "of_group", "since", "standing", "term")

    def __init__(self, *, of_group: bool, term: int) -> None:
        self.term = term
        self.since: int | None = None
        """The first announcement that tells it; None: none did yet."""
        self.confirmed = False
        self.of_group = of_group
        """Whether the group gave us the partition, and did not give it to another since."""
        self.barrier = Barrier()
        """The topic's end after it was confirmed: before, we may lack what an earlier holder has shown."""
        self.standing: Standing | None = None
        """How this instance stands to the partition, once the barrier is passed."""


class Holds:
    """What this instance holds."""

    def __init__(self, me: Identity, terms: Terms) -> None:
        self._me = me
        self._terms = terms
        self._sent: dict[int, float] = {}
        self._read_back = 0
        self._until = float("-inf")
        self._unbroken = False
        self._ticked = float("-inf")
        self.view = View(me, terms.silence)
        self.held: dict[Part, Hold] = {}

    def tick(self, now: float) -> None:
        """To be called every tenth of a second: a gap says that the process stood still, and may have been replaced."""
        if now - self._ticked >= self._terms.pause:
            self._unbroken = False
        self._ticked = now

    def sent(self, number: int, at: float) -> None:
        """An announcement of what is held now is sent."""
        recent = {earlier: when for earlier, when in self._sent.items() if at - when < FORGOTTEN * self._terms.silence}
        self._sent = recent | {number: at}
        for hold in self.held.values():
            if hold.since is None:
                hold.since = number

    def hear(self, announcement: Announcement, at: float) -> None:
        """An announcement was read, of this instance or of another."""
        me = self._me
        peer = self.view.hear(announcement, at)
        if (announcement.store, announcement.run) == (me.store, me.run):
            self._hear_own(announcement.number, at)
        elif peer is not None:
            self._yield_to(peer, at)

    def leased(self, now: float) -> bool:
        """Whether nobody can have taken over what is held and confirmed.

        Alone in the cluster, that stays so while the broker is away, as long as this process does not stand still.
        """
        if now < self._until:
            return True
        alone = self._unbroken and now - self._ticked < self._terms.pause and not self.view.peers()
        return alone and self.view.contact is not None

    @property
    def knows_all(self) -> bool:
        """Whether each of the others was heard since this instance is there: it has their watermarks then.

        Who took a partition before would show keys as living whose end another has shown.
        """
        return all(peer.met for peer in self.view.peers())

    def decide(self, copies: Mapping[Part, Copy], now: float) -> bool:
        """Let go what another shall hold, and take what is free and ours; tells whether anything changed."""
        peers = self.view.peers()
        before = set(self.held)
        for part in before:
            copy = copies.get(part)
            if copy is None or not copy.ready or _shall_pass(part, copy, peers):
                del self.held[part]
            elif copy.assigned:
                self.held[part].of_group = True
            elif any(peer.is_assigned(part) for peer in peers):
                self.held[part].of_group = False
        if now < self._until and self.knows_all:
            for part, copy in copies.items():
                if part not in self.held and copy.ready and self._is_ours(part, copy, peers):
                    self.held[part] = Hold(of_group=copy.assigned, term=1 + self.view.term(part))
        return before != set(self.held)

    def _hear_own(self, number: int, at: float) -> None:
        if number <= self._read_back or number not in self._sent:
            return
        self._read_back = number
        self.view.contact = sent = self._sent[number]
        self._sent = {later: when for later, when in self._sent.items() if later > number}
        self._until = sent + self._terms.lease
        self._unbroken = at < self._until
        for hold in self.held.values():
            hold.confirmed |= hold.since is not None and hold.since <= number

    def _yield_to(self, peer: Peer, at: float) -> None:
        for part, hold in list(self.held.items()):
            lasting = hold.confirmed and at < self._until and peer.term(part) <= hold.term
            if peer.holds(part) and not lasting:
                del self.held[part]

    def _is_ours(self, part: Part, copy: Copy, peers: list[Peer]) -> bool:
        if any(peer.holds(part) for peer in peers):
            return False
        ready = {peer.announcement.store for peer in peers if peer.is_ready(part)} | {self._me.store}
        assigned = {peer.announcement.store for peer in peers if peer.is_assigned(part)}
        return first(part, ready, assigned | {self._me.store} if copy.assigned else assigned) == self._me.store


def _shall_pass(part: Part, copy: Copy, peers: list[Peer]) -> bool:
    """A copy lets go as soon as the owner can go on."""
    return not copy.assigned and any(peer.is_assigned(part) and peer.is_ready(part) for peer in peers)
