"""The health and metrics of the workers of a process, for its endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from prometheus_client import generate_latest
from typing_extensions import override

from services.runtime.loop_calls import PATIENCE_S, LoopCalls
from services.runtime.monitoring import Monitored, MonitoredProcess, process_registry

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from prometheus_client.registry import Collector


class MonitoredWorker(Monitored, Protocol):
    """A worker behind the endpoints. Its methods are called in the event loop."""

    def measure(self) -> None:
        """Update the gauges."""
        ...


class Monitoring(MonitoredProcess):
    """The workers of a process by name, and their metrics. All are stuck when their event loop hangs.

    The thread of the endpoints calls it, and the event loop looks at the workers.
    """

    def __init__(
        self,
        workers: Mapping[str, MonitoredWorker],
        metrics: Collector,
        loop: asyncio.AbstractEventLoop,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._workers = workers
        self._calls = LoopCalls(loop, patience_s)
        self._registry = process_registry(metrics)

    @override
    def unhealthy(self) -> str | None:
        return self._joined(lambda worker: worker.unhealthy())

    @override
    def unready(self) -> str | None:
        return self._joined(lambda worker: worker.unready())

    @override
    def text(self) -> bytes:
        """Return the metrics. While the event loop hangs, the gauges have the values of the last measurement."""

        def measured() -> bytes:
            for worker in self._workers.values():
                worker.measure()
            return generate_latest(self._registry)

        return self._calls.call(measured, lambda: generate_latest(self._registry))

    def _joined(self, problem: Callable[[MonitoredWorker], str | None]) -> str | None:
        """Return the problems of all workers, or that of the event loop."""

        def joined() -> str | None:
            found = ((name, problem(worker)) for name, worker in self._workers.items())
            return "; ".join(f"{name}: {why}" for name, why in found if why is not None) or None

        return self._calls.call(joined, self._calls.problem)
