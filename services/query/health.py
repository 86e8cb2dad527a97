"""Whether an instance does its work: judged by the follower's rounds, for a thread that hangs answers no question."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from contracts.metrics import query as metrics
from services.query.cluster.routing import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.query.dependencies import Parts
    from services.query.ingest.kafka_ingestion import Tally

LOOK_EVERY_S = 1.0


class Health:
    """What monitors ask (Watched). A broker that is away is no reason for a restart: it would cost answers."""

    def __init__(self, parts: Parts, tally: Tally, joined: Callable[[], bool]) -> None:
        self._parts = parts
        self._tally = tally
        self._joined = joined
        self._rounds, self._moved = -1, parts.clock()
        self.stopping = False

    async def run(self) -> None:
        """Look at the follower until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    def look(self) -> None:
        """Note whether the follower went round."""
        if self._tally.rounds != self._rounds:
            self._rounds, self._moved = self._tally.rounds, self._parts.clock()

    def unhealthy(self) -> str | None:
        """Why a restart is called for; None while the follower goes round, with records to read or without."""
        stuck = self._parts.clock() - self._moved
        if stuck > self._parts.settings.stuck_after.total_seconds():
            return f"nothing was looked for in the topics for {stuck:.0f} s"
        return None

    def unready(self) -> str | None:
        """Why it does not answer for all that is its own."""
        if self.stopping:
            return "it is stopping"
        if not self._joined():
            return "it is not one of the cluster yet"
        if behind := sum(roles[Role.CATCHING_UP] for roles in self._roles().values()):
            return f"{behind} partitions are still catching up"
        lost = sum(
            self._nobodys(name, one) for name, state in self._parts.states.items() for one in range(state.partitions)
        )
        return f"nobody is known who answers for {lost} partitions" if lost else None

    def measure(self) -> None:
        """Bring the gauges up to date."""
        counts = self._parts.counts
        for name, roles in self._roles().items():
            for role in Role:
                counts.set(metrics.PARTITIONS, roles[role], name, role)
        for name, state in self._parts.states.items():
            stands = (self._parts.roles.standing(name, one) for one in range(state.partitions))
            counts.set(metrics.LAG, sum(one.lag for one in stands), name)
            counts.set(metrics.HELD, self._parts.stores[name].keys(), name)
            counts.set(metrics.RECORDS, self._tally.records[name], name)
            counts.set(metrics.MISPLACED, self._parts.misplaced.get(name, 0), name)
            counts.set(metrics.GARBAGE, self._tally.garbage[name], name)

    def _nobodys(self, state: str, partition: int) -> bool:
        roles = self._parts.roles
        return roles.standing(state, partition).role is Role.ELSEWHERE and not roles.owners(state, partition)

    def _roles(self) -> dict[str, Counter[Role]]:
        """How many partitions of each state it is what to."""
        standing = self._parts.roles.standing
        return {
            name: Counter(standing(name, one).role for one in range(state.partitions))
            for name, state in self._parts.states.items()
        }
