"""The health and metrics of the workers of a process, for its endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from contracts.metrics.counts import LabelledCounts
from services.runtime.loop_calls import PATIENCE_S, LoopCalls

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Mapping
    from datetime import timedelta

    from contracts.metrics.counts import Counts
    from services.enrichment.health import HealthStatus


class Measured(Protocol):
    """A worker behind the endpoints. Its methods are called in the event loop."""

    def health(self) -> HealthStatus:
        """Return its health now."""
        ...

    def measure(self) -> None:
        """Update the gauges."""
        ...


class MonitoredWorker(NamedTuple):
    """A worker that counts as stuck after `stuck_after` without progress. `labels` are those of its metrics."""

    worker: Measured
    counts: Counts
    stuck_after: timedelta
    labels: Mapping[str, str]


class Monitoring:
    """The workers of a process by name. All are stuck when their event loop hangs.

    Implements `monitoring.Monitored`: the thread of the endpoints calls it, and the event loop looks at the workers.
    """

    def __init__(
        self, workers: Mapping[str, MonitoredWorker], loop: asyncio.AbstractEventLoop, patience_s: float = PATIENCE_S
    ) -> None:
        self._workers = workers
        self._calls = LoopCalls(loop, patience_s)
        self._registry = CollectorRegistry()
        self._registry.register(LabelledCounts([(one.labels, one.counts) for one in workers.values()]))
        ProcessCollector(registry=self._registry)

    def unhealthy(self) -> str | None:
        """See `Monitored.unhealthy`."""
        return self._calls.call(
            lambda: _joined((name, one.worker.health().unhealthy(one.stuck_after)) for name, one in self._all()),
            self._calls.problem,
        )

    def unready(self) -> str | None:
        """See `Monitored.unready`. A worker is ready while it is a member of its group, and does not stop."""
        return self._calls.call(
            lambda: _joined((name, one.worker.health().unready()) for name, one in self._all()), self._calls.problem
        )

    def text(self) -> bytes:
        """See `Monitored.text`. While the event loop hangs, the gauges are those of the last measurement."""

        def measured() -> bytes:
            for _, one in self._all():
                one.worker.measure()
            return generate_latest(self._registry)

        return self._calls.call(measured, lambda: generate_latest(self._registry))

    def _all(self) -> Iterable[tuple[str, MonitoredWorker]]:
        return self._workers.items()


def _joined(reasons: Iterable[tuple[str, str | None]]) -> str | None:
    return "; ".join(f"{name}: {reason}" for name, reason in reasons if reason is not None) or None
