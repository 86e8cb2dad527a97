"""The health and metrics of the sinks of a process, for its endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from services.runtime.loop_calls import LoopCalls

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from contracts.metrics.counts import Counts
    from services.sink.worker import SinkWorker


class SinkMonitoring:
    """The sinks of a process by state. Implements `monitoring.Monitored`."""

    def __init__(self, workers: Mapping[str, SinkWorker], counts: Counts, loop: asyncio.AbstractEventLoop) -> None:
        self._workers = workers
        self._calls = LoopCalls(loop)
        self._registry = CollectorRegistry()
        self._registry.register(counts)
        ProcessCollector(registry=self._registry)

    def unhealthy(self) -> str | None:
        """See `Monitored.unhealthy`."""
        return self._calls.call(lambda: self._joined(lambda one: one.unhealthy()), self._calls.problem)

    def unready(self) -> str | None:
        """See `Monitored.unready`."""
        return self._calls.call(lambda: self._joined(lambda one: one.unready()), self._calls.problem)

    def text(self) -> bytes:
        """See `Monitored.text`. While the event loop hangs, the gauges are those of the last measurement."""
        return self._calls.call(self._measured, lambda: generate_latest(self._registry))

    def _measured(self) -> bytes:
        for worker in self._workers.values():
            worker.measure()
        return generate_latest(self._registry)

    def _joined(self, reason: Callable[[SinkWorker], str | None]) -> str | None:
        reasons = ((name, reason(worker)) for name, worker in self._workers.items())
        return "; ".join(f"{name}: {why}" for name, why in reasons if why is not None) or None
