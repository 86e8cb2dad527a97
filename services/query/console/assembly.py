"""Assembles the console: the sampler, the reader of dead letters, and the routes."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from services.query.console.dead_letters import TAIL, DeadLetterReader
from services.query.console.end_offsets import EndOffsets
from services.query.console.figures import topics_of
from services.query.console.loops import Loops
from services.query.console.routes import Console
from services.query.console.sampler import Sources, sampling, targets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from contracts import Suite
    from services.query.dependencies import Dependencies
    from services.runtime.kafka.interfaces import Admin, Kafka


@asynccontextmanager
async def console(suite: Suite, dependencies: Dependencies, kafka: Kafka, admin: Admin) -> AsyncIterator[Console]:
    """Yield the console's routes; the loops of the suite's applications are sampled while it is open."""
    settings = dependencies.settings
    every_s = settings.scrape_every.total_seconds()
    loops = Loops(suite, every_s)
    topics = {name for application in suite.applications for name in topics_of(application).values()}
    sources = Sources(
        targets=targets(settings.scrape_targets),
        end_offsets=EndOffsets(admin, topics),
        states=dependencies.states,
        routing=dependencies.routing,
        clock=dependencies.clock,
        now=lambda: datetime.now(UTC),
    )
    async with AsyncExitStack() as stack:
        logs = {one.application.topics.dead_letters: one.dead_letters for one in loops.all()}
        follower = DeadLetterReader(kafka.blocking_reader("console-dead-letters", options=TAIL), logs)
        follower.start()
        stack.push_async_callback(asyncio.to_thread, follower.close)
        await stack.enter_async_context(sampling(sources, loops.record, every_s))
        yield Console(loops, settings.jars)
