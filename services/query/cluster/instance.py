"""How one instance conducts itself: what it follows, announces and answers for. No I/O: the time is passed in."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

from contracts.wire.announcement import AnnouncedPart, AnnouncedState, Announcement
from services.query.cluster.catch_up import Barrier
from services.query.cluster.leases import Copy, Holds
from services.query.cluster.placement import standbys
from services.query.cluster.routing import Member, Role, Standing
from services.query.ingest.decode import AHEAD_MS
from services.query.ingest.ingestion import Part
from services.query.store.buckets import clock_watermark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from contracts.model.named_state import NamedState
    from services.query.cluster.leases import Terms
    from services.query.cluster.membership import Identity, Peer
    from services.query.ingest.ingestion import Following

log = logging.getLogger(__name__)


class Marked(Protocol):
    """Of a store, what is told to others."""

    def watermark(self) -> int:
        """See `Store.watermark`."""

    def advance(self, watermark: int) -> None:
        """See `Store.advance`."""


class Surroundings(NamedTuple):
    """What an instance acts on: the states, who keeps the stores up, and the stores.

    `now` is the time of day, in milliseconds since 1970.
    """

    states: Mapping[str, NamedState]
    following: Following
    stores: Mapping[str, Marked]
    now: Callable[[], int]


class Instance:
    """One instance among others. `step` is to be called ten times a second, and after whatever it was told."""

    def __init__(self, me: Identity, terms: Terms, surroundings: Surroundings, replicas: int) -> None:
        self.me = me
        self.holds = Holds(me, terms)
        self.assigned: set[Part] = set()
        self._around = surroundings
        self._parts = [Part(name, at) for name, one in surroundings.states.items() for at in range(one.partitions)]
        self._replicas = replicas
        self._followed: dict[Part, Barrier] = {}
        self._number = 0
        self._told: object = None
        self._incredible: set[tuple[str, str]] = set()

    def hear(self, announcement: Announcement, at: float) -> None:
        """An announcement was read, of this instance or of another. What it gives up, it does at once."""
        view, peers = self.holds.view, self.me.store != announcement.store
        there = view.contact is not None and peers  # it comes after one of ours in the topic
        if there and not view.knows(announcement):
            self._told = None  # who is new, or back, hears at once what we have
        self.holds.hear(announcement, at)
        if there:
            self._take_watermarks(announcement)

    def _take_watermarks(self, announcement: Announcement) -> None:
        """A watermark never goes down, so what ended once stays so. Those of instances that are gone are not taken up.

        What they told may be of records that are no longer on the topics; what is, those who are there have seen too.
        Nor is one that no record of now could have given, for it would end all lives.
        """
        credible = self._around.now() + AHEAD_MS
        for name, state in announcement.states.items():
            store = self._around.stores.get(name)
            if store is None or state.watermark <= store.watermark():
                continue
            if state.watermark <= credible:
                store.advance(state.watermark)
            elif (name, announcement.store) not in self._incredible:
                self._incredible.add((name, announcement.store))
                facts = {"instance": announcement.instance, "state": name, "watermark": state.watermark}
                log.warning("a watermark is a day ahead of the clock, and not believed", extra={"facts": facts})

    def restarted(self, part: Part) -> None:
        """The part is read from the beginning again: until that is done there is nothing to be had of it here."""
        if part in self._followed:
            self._followed[part] = Barrier()
        self.holds.held.pop(part, None)

    def step(self, now: float) -> bool:
        """Go on; tells whether there is something to announce at once."""
        self.holds.tick(now)
        self.holds.view.sweep()
        self._follow()
        copies = {part: Copy(part in self.assigned, self._reached(part, one)) for part, one in self._followed.items()}
        self.holds.decide(copies, now)
        self._take_stand()
        return self._facts(now) != self._told

    @property
    def waits(self) -> bool:
        """Whether a partition has to wait for this instance: then `step` is to be called more often."""
        return any(hold.standing is None for hold in self.holds.held.values())

    def asking(self) -> dict[Part, list[Barrier]]:
        """The partitions whose ends have to be asked for now, with the barriers that get the answer."""
        open_ = [(part, barrier) for part, barrier in self._followed.items() if barrier.target is None]
        open_ += [(p, h.barrier) for p, h in self.holds.held.items() if h.confirmed and h.barrier.target is None]
        asked: dict[Part, list[Barrier]] = {}
        for part, barrier in open_:
            asked.setdefault(part, []).append(barrier)
        return asked

    def announce(self, now: float, ts: datetime) -> Announcement:
        """What is to be written into the topic now. What has ended by the clock ends with it: so all hear of it."""
        self._expire()
        self._number += 1
        self._told = self._facts(now)
        self.holds.sent(self._number, now)
        return self._announcement(ts, self._states(now))

    def presented(self, now: float, ts: datetime) -> Announcement:
        """The same for who asks this instance; only what it answers for now is held."""
        return self._announcement(ts, self._states(now, answered=True))

    def leave(self) -> Announcement:
        """What is to be written at the end. From now on it answers for nothing."""
        self._number += 1
        self.holds.held.clear()
        return self._announcement(datetime.now(UTC), {}, leaving=True)

    def standing(self, state: str, partition: int, now: float) -> Standing:
        """What it is to a partition now."""
        part = Part(state, partition)
        hold = self.holds.held.get(part)
        if hold is not None and hold.standing is not None and self.holds.leased(now):
            return hold.standing
        return self._otherwise(part, held=hold is not None)

    def owners(self, part: Part) -> list[Peer]:
        """Which others may answer for it: who holds it, whom the group gave it, who has a copy, in this order."""
        there = [one for one in self.holds.view.peers() if one.parts.get(part)]

        def rank(one: Peer) -> tuple[bool, int, bool, bool]:
            return not one.holds(part), -one.term(part), not one.is_assigned(part), not one.is_ready(part)

        return sorted(there, key=rank)

    def members(self) -> list[Member]:
        """This instance, and the others that are there."""
        peers = [peer.announcement for peer in self.holds.view.peers()]
        return [Member(self.me.instance, self.me.url), *(Member(one.instance, one.url) for one in peers)]

    def _follow(self) -> None:
        wanted = self._wanted()
        for part in self._followed.keys() - wanted:
            self._around.following.leave(part)
            del self._followed[part]
        for part in sorted(wanted - self._followed.keys()):
            self._around.following.follow(part)
            self._followed[part] = Barrier()

    def _wanted(self) -> set[Part]:
        peers = self.holds.view.peers()
        stores = tuple(sorted({self.me.store, *(peer.announcement.store for peer in peers)}))
        wanted = self.assigned | self.holds.held.keys()
        if self._replicas > 1 and self.holds.view.contact is not None:
            wanted |= {
                part
                for part in self._parts
                if part not in wanted and self.me.store in standbys(part, _owner(part, peers), stores, self._replicas)
            }
        return wanted

    def _reached(self, part: Part, barrier: Barrier) -> bool:
        progress = self._around.following.progress(part)
        return barrier.passed or (progress is not None and barrier.look(progress.position))

    def _take_stand(self) -> None:
        for part, hold in self.holds.held.items():
            progress = self._around.following.progress(part)
            if progress is not None and hold.barrier.look(progress.position):
                hold.standing = Standing(Role.OWNER if hold.of_group else Role.STANDBY, progress.lag)

    def _otherwise(self, part: Part, *, held: bool) -> Standing:
        progress = self._around.following.progress(part)
        lag = progress.lag if progress else 0
        peers = [peer for peer in self.holds.view.peers() if part in peer.parts]
        if held or part in self.assigned:
            others = bool(peers) if held else any(peer.holds(part) for peer in peers)
            return Standing(Role.ELSEWHERE if others else Role.CATCHING_UP, lag)
        return Standing(Role.ELSEWHERE, lag)

    def _facts(self, now: float) -> object:
        """What others act on."""
        return (
            self.holds.leased(now),
            self.holds.knows_all,
            tuple(
                (part, part in self.assigned, barrier.passed, part in self.holds.held)
                for part, barrier in self._followed.items()
            ),
        )

    def _states(self, now: float, *, answered: bool = False) -> dict[str, AnnouncedState]:
        leased = self.holds.leased(now)
        able = leased and self.holds.knows_all  # others must not let go for who cannot take a partition over
        held = {part for part, hold in self.holds.held.items() if not answered or (hold.standing and leased)}
        parts: dict[str, list[AnnouncedPart]] = {}
        for part, barrier in sorted(self._followed.items(), key=lambda item: item[0]):
            progress = self._around.following.progress(part)
            parts.setdefault(part.state, []).append(
                AnnouncedPart(
                    partition=part.partition,
                    assigned=part in self.assigned,
                    ready=barrier.passed and able,
                    held=part in held,
                    term=self.holds.held[part].term if part in held else 0,
                    position=progress.position if progress else 0,
                    lag=progress.lag if progress else 0,
                )
            )
        return {
            name: AnnouncedState(watermark=store.watermark(), parts=tuple(parts.get(name, ())))
            for name, store in self._around.stores.items()
        }

    def _expire(self) -> None:
        """Advance the watermarks of states whose lives end by the clock."""
        now = self._around.now()
        for name, state in self._around.states.items():
            if (watermark := clock_watermark(state, now)) is not None:
                self._around.stores[name].advance(watermark)

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


def _owner(part: Part, peers: Iterable[Peer]) -> str | None:
    return next((peer.announcement.store for peer in peers if peer.is_assigned(part)), None)
