"""Assembles the console: the sampler, the reader of dead letters, and the routes."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from services.query.console.dead_letters import DeadLetterLog, DeadLetterReader
from services.query.console.end_offsets import EndOffsets
from services.query.console.metrics_history import MetricsHistory
from services.query.console.routes import Console
from services.query.console.sampler import Sources, sampling, targets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from contracts import Application
    from services.query.dependencies import Dependencies


@asynccontextmanager
async def console(application: Application, dependencies: Dependencies) -> AsyncIterator[Console]:
    """Yield the console's routes; the loop is sampled while it is open."""
    settings, topics = dependencies.settings, application.topics
    every_s = settings.scrape_every.total_seconds()
    history, letters = MetricsHistory(application, every_s), DeadLetterLog(topics.dead_letters)
    sources = Sources(
        application=application.name,
        targets=targets(settings.scrape_targets),
        ends=EndOffsets(settings.client(), (topics.events, topics.feedback, topics.snapshots, topics.dead_letters)),
        states=dependencies.states,
        routing=dependencies.routing,
        clock=dependencies.clock,
        now=lambda: datetime.now(UTC),
    )
    async with AsyncExitStack() as stack:
        follower = DeadLetterReader(settings.client(), topics.dead_letters, letters)
        follower.start()
        stack.push_async_callback(asyncio.to_thread, follower.close)
        await stack.enter_async_context(sampling(sources, history, every_s))
        yield Console(application, history, letters, settings.jars)
