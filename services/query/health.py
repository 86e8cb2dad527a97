"""The health of an instance, by the rounds of the ingest thread, which cannot report itself when it hangs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from prometheus_client import generate_latest
from typing_extensions import override

from contracts.metrics import query as metrics
from services.query.cluster import Role, StateRoles, roles_of
from services.runtime.monitoring import MonitoredProcess, process_registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.query.dependencies import Dependencies
    from services.query.ingest import IngestCounts

CHECK_INTERVAL_S = 1.0


class Health(MonitoredProcess):
    """An instance behind its endpoints. A broker that is down is no reason for a restart: responses would stop too."""

    def __init__(self, dependencies: Dependencies, counts: IngestCounts, has_joined: Callable[[], bool]) -> None:
        self._dependencies = dependencies
        self._counts = counts
        self._has_joined = has_joined
        self._rounds, self._advanced_at = -1, dependencies.clock()
        self._registry = process_registry(dependencies.counts)
        self.stopping = False

    async def run(self) -> None:
        """Check the progress of ingest until cancelled."""
        while True:
            self.check()
            await asyncio.sleep(CHECK_INTERVAL_S)

    def check(self) -> None:
        """Note whether the ingest thread has finished a round."""
        if self._counts.rounds != self._rounds:
            self._rounds, self._advanced_at = self._counts.rounds, self._dependencies.clock()

    @override
    def unhealthy(self) -> str | None:
        """Return why a restart is needed; None while the ingest thread runs, with or without records to read."""
        stuck = self._dependencies.clock() - self._advanced_at
        if stuck > self._dependencies.settings.stuck_after.total_seconds():
            return f"the topics were not polled for {stuck:.0f} s"
        return None

    @override
    def unready(self) -> str | None:
        """Return why the instance does not answer for all its partitions."""
        if self.stopping:
            return "it is stopping"
        if not self._has_joined():
            return "it has not joined the cluster yet"
        roles = self._roles().values()
        if behind := sum(state.partitions[Role.CATCHING_UP] for state in roles):
            return f"{behind} partitions are still catching up"
        unowned = sum(state.unowned for state in roles)
        return f"no known instance answers for {unowned} partitions" if unowned else None

    @override
    def text(self) -> bytes:
        self._measure()
        return generate_latest(self._registry)

    def _measure(self) -> None:
        """Update the gauges."""
        counts = self._dependencies.counts
        for name, roles in self._roles().items():
            for role in Role:
                counts.set(metrics.PARTITIONS, roles.partitions[role], name, role)
            counts.set(metrics.LAG, roles.lags.total(), name)
            counts.set(metrics.HELD, self._dependencies.stores[name].key_count(), name)
            counts.set(metrics.FREE_BYTES, self._dependencies.stores[name].free_bytes(), name)
            counts.set(metrics.RECORDS, self._counts.records[name], name)
            counts.set(metrics.MISPLACED, self._dependencies.misplaced.get(name, 0), name)
            counts.set(metrics.GARBAGE, self._counts.undecodable[name], name)

    def _roles(self) -> dict[str, StateRoles]:
        return {name: roles_of(state, self._dependencies.routing) for name, state in self._dependencies.states.items()}
