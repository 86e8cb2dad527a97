"""The console, put together: what looks at the loop in the background, and the routes that answer from it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from services.query.console.course import Course
from services.query.console.ends import Ends
from services.query.console.gather import Sources, addresses, gathering
from services.query.console.letters import Follower, Letters
from services.query.console.routes import Console

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from contracts import Application
    from services.query.dependencies import Parts


@asynccontextmanager
async def console(application: Application, parts: Parts) -> AsyncIterator[Console]:
    """The piece with the console's routes; while it is open, the loop is looked at."""
    settings, topics = parts.settings, application.topics
    every_s = settings.look_every.total_seconds()
    course, letters = Course(application, every_s), Letters(topics.dead_letters)
    sources = Sources(
        addresses=addresses(settings.parts),
        ends=Ends(settings.client(), (topics.events, topics.feedback, topics.snapshots, topics.dead_letters)),
        states=parts.states,
        roles=parts.roles,
        clock=parts.clock,
        now=lambda: datetime.now(UTC),
    )
    async with AsyncExitStack() as stack:
        follower = Follower(settings.client(), topics.dead_letters, letters)
        follower.start()
        stack.push_async_callback(asyncio.to_thread, follower.close)
        await stack.enter_async_context(gathering(sources, course, every_s))
        yield Console(application, course, letters)
