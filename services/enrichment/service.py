"""Puts a worker together from its settings, and runs it until it is told to stop."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from services.enrichment.calls.api import HttpApi
from services.enrichment.calls.caller import Caller
from services.enrichment.calls.transport import AiohttpTransport, Transport
from services.enrichment.endpoints import Endpoints
from services.enrichment.metrics import Metrics
from services.enrichment.publisher import KafkaPublisher
from services.enrichment.source import KafkaSource
from services.enrichment.worker import Parts, Worker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contracts import Api, Application, Policy
    from services.enrichment.settings import EnrichmentSettings

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def serve(settings: EnrichmentSettings, application: Application) -> None:
    """Run a worker until SIGTERM or SIGINT. Raises a WorkerError, in a group, when that is not possible."""
    loop, counts = asyncio.get_running_loop(), Metrics()
    async with AsyncExitStack() as stack:
        transports = {
            name: await stack.enter_async_context(_transport(url, application.apis[name]))
            for name, url in settings.base_urls(application).items()
        }
        publisher = KafkaPublisher(settings.client(), loop)
        stack.push_async_callback(publisher.close)
        source = KafkaSource(
            settings.client(),
            topic=application.topics.snapshots,
            group=settings.group or application.enrichment_group,
            batch=settings.fetch_most,
            drain=settings.drain,
        )
        caller = Caller(
            application,
            apis(application, transports, counts),
            sleep=asyncio.sleep,
            draw=random.uniform,
        )
        worker = Worker(Parts(application, settings, source, caller, publisher, counts, now, time.monotonic))
        if settings.http_port is not None:
            endpoints = Endpoints(worker, counts, settings.stuck_after)
            await stack.enter_async_context(endpoints.serving(settings.http_host, settings.http_port))
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, worker.stop)
        await worker.run()


def apis(application: Application, transports: Mapping[str, Transport], counts: Metrics) -> dict[str, Api]:
    """What each enrichment calls with, by enrichment's name."""
    return {
        one.name: HttpApi(transports[one.api], one, application.apis[one.api], now, counts)
        for one in application.enrichments
    }


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def _transport(url: str, policy: Policy) -> AiohttpTransport:
    return AiohttpTransport(url, connections=policy.concurrency, body_limit=policy.largest_answer)
