"""The health and metrics of the workers of a process, for its endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from typing_extensions import override

from services.runtime.loop_calls import PATIENCE_S, LoopCalls
from services.runtime.monitoring import Monitored

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Mapping

    from prometheus_client.registry import Collector


class MonitoredWorker(Protocol):
    """A worker behind the endpoints. Its methods are called in the event loop."""

    def unhealthy(self) -> str | None:
        """Return why the process must be restarted; None if the worker is healthy."""
        ...

    def unready(self) -> str | None:
        """Return why it does not work now; None if it does."""
        ...

    def measure(self) -> None:
        """Update the gauges."""
        ...


class Monitoring(Monitored):
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
        self._registry = CollectorRegistry()
        self._registry.register(metrics)
        ProcessCollector(registry=self._registry)

    @override
    def unhealthy(self) -> str | None:
        return self._calls.call(
            lambda: _joined((name, worker.unhealthy()) for name, worker in self._workers.items()), self._calls.problem
        )

    @override
    def unready(self) -> str | None:
        return self._calls.call(
            lambda: _joined((name, worker.unready()) for name, worker in self._workers.items()), self._calls.problem
        )

    @override
    def text(self) -> bytes:
        """Return the metrics. While the event loop hangs, the gauges have the values of the last measurement."""

        def measured() -> bytes:
            for worker in self._workers.values():
                worker.measure()
            return generate_latest(self._registry)

        return self._calls.call(measured, lambda: generate_latest(self._registry))


def _joined(reasons: Iterable[tuple[str, str | None]]) -> str | None:
    return "; ".join(f"{name}: {reason}" for name, reason in reasons if reason is not None) or None
