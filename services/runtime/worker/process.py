"""Runs the workers of a process until a signal stops them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from services.runtime.monitoring import serving
from services.runtime.shutdown import STOP_SIGNALS
from services.runtime.worker.monitoring import Monitoring

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prometheus_client.registry import Collector

    from services.runtime.worker.worker import Worker

log = logging.getLogger(__name__)


async def run_workers(
    workers: Mapping[str, Worker[Any]], metrics: Collector, http_host: str, http_port: int | None
) -> None:
    """Run workers, by name, until SIGTERM or SIGINT, with their endpoints.

    Raises a StateloopError, or a group of them, if one of them cannot work: the others stop then.
    """
    loop = asyncio.get_running_loop()
    with serving(Monitoring(workers, metrics, loop), http_host, http_port) as port:
        if port is not None:
            log.info("endpoints", extra={"facts": {"url": f"http://{http_host}:{port}"}})
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, _stop, workers.values())
        async with asyncio.TaskGroup() as tasks:
            for worker in workers.values():
                tasks.create_task(worker.run())


def _stop(workers: Iterable[Worker[Any]]) -> None:
    for worker in workers:
        worker.stop()
