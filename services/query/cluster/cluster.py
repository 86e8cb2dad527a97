"""This instance in the cluster: keeps to what it should follow and announce, and says what it may answer."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from services.query.cluster.routing import Member
from services.query.ingest.ingestion import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from contracts.wire.announcement import Announcement
    from services.query.cluster.announcements import Announcements
    from services.query.cluster.group import Membership
    from services.query.cluster.instance import Instance
    from services.query.cluster.routing import Standing
    from services.query.ingest.ingestion import Following

log = logging.getLogger(__name__)

STEP_S = 0.1
BRISK_S = 0.01
"""How often it looks while it waits to reach the end of a partition."""
AGAIN_S = 0.2
"""After how long ends that the brokers did not tell are asked for again."""


clock = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
"""Seconds of a clock that also goes on while the machine sleeps, where there is one."""


class Links(NamedTuple):
    """What ties an instance to the others."""

    membership: Membership
    announcements: Announcements
    following: Following


class Cluster:
    """Implements Roles. It announces itself every so many seconds, and at each change."""

    def __init__(self, instance: Instance, links: Links, every: float, now: Callable[[], float] = clock) -> None:
        self.instance = instance
        self._links = links
        self._every = every
        self._now = now
        self._announced = float("-inf")
        self._wake = asyncio.Event()
        self._asking = asyncio.Event()

    def standing(self, state: str, partition: int) -> Standing:
        """See `Roles.standing`."""
        return self.instance.standing(state, partition, self._now())

    def owners(self, state: str, partition: int) -> Sequence[Member]:
        """See `Roles.owners`."""
        found = (peer.announcement for peer in self.instance.owners(Part(state, partition)))
        return [Member(one.instance, one.url) for one in found]

    def members(self) -> Sequence[Member]:
        """See `Roles.members`."""
        return self.instance.members()

    def announced(self) -> Sequence[Announcement]:
        """What this instance has now, and what the others announced last."""
        now = self.instance.presented(self._now(), datetime.now(UTC))
        return [now, *(peer.announcement for peer in self.instance.holds.view.peers())]

    def restarted(self, part: Part) -> None:
        """See `Listener.restarted`."""
        self.instance.restarted(part)
        self._wake.set()

    async def run(self) -> None:
        """Be one of the cluster until cancelled, and leave it then. Raises NamesakeError, ClientFailedError."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._links.announcements.run(self._hear))
            tasks.create_task(self._links.membership.run(self._assign))
            tasks.create_task(self._ask_ends())
            try:
                await self._go_on()
            finally:  # before all else: others go on in its place as soon as they have read it
                await self._links.announcements.leave(self.instance.leave())

    async def _go_on(self) -> None:
        while True:
            now = self._now()
            if self.instance.step(now) or now - self._announced >= self._every:
                self._announced = now
                self._links.announcements.send(self.instance.announce(now, datetime.now(UTC)))
            if self.instance.asking():
                self._asking.set()
            self._wake.clear()
            try:
                async with asyncio.timeout(BRISK_S if self.instance.waits else STEP_S):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _ask_ends(self) -> None:
        while True:
            await self._asking.wait()
            self._asking.clear()
            asked = self.instance.asking()
            ends = await self._links.following.ends(asked)
            for part, end in ends.items():
                for barrier in asked[part]:
                    barrier.target = end
            self._wake.set()
            if asked.keys() - ends.keys():
                await asyncio.sleep(AGAIN_S)

    def _hear(self, announcements: Sequence[Announcement]) -> None:
        now = self._now()
        for one in announcements:
            self.instance.hear(one, now)
        self._wake.set()

    def _assign(self, parts: Collection[Part]) -> None:
        log.info("partitions", extra={"facts": {"assigned": sorted(f"{one.state}/{one.partition}" for one in parts)}})
        self.instance.assigned = set(parts)
        self._wake.set()
