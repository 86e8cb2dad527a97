"""Samples the loops of a suite at an interval while the service runs: each target once for all applications."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import ClientSession, DummyCookieJar

from contracts.api.loop import StateStatus
from services.query.cluster import Role, roles_of
from services.query.console.observation import Observation
from services.query.console.scrape import ScrapeTarget, scrape

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from datetime import datetime

    from contracts.model.named_state import NamedState
    from services.query.cluster import Routing
    from services.query.console.end_offsets import EndOffsets

log = logging.getLogger(__name__)

Record = Callable[[Observation], None]


@dataclass(frozen=True)
class Sources:
    """The sources of an observation. `clock` is monotonic, in seconds; `now` is the time of day."""

    targets: Sequence[ScrapeTarget]
    end_offsets: EndOffsets
    states: Mapping[str, NamedState]
    routing: Routing
    clock: Callable[[], float]
    now: Callable[[], datetime]


def targets(parts: Mapping[str, Sequence[str]]) -> tuple[ScrapeTarget, ...]:
    """Return the targets of the setting."""
    return tuple(ScrapeTarget(kind, url) for kind, urls in parts.items() for url in urls)


@asynccontextmanager
async def sampling(sources: Sources, record: Record, every_s: float) -> AsyncIterator[None]:
    """Pass an observation to `record` at each interval, in the background."""
    async with ClientSession(cookie_jar=DummyCookieJar(), trust_env=False) as session:
        task = asyncio.create_task(_gather(session, sources, record, every_s), name="console")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def observe(session: ClientSession, sources: Sources) -> Observation:
    """Observe the targets and the broker concurrently."""
    parts, end_offsets = await asyncio.gather(
        scrape(session, sources.targets), asyncio.to_thread(sources.end_offsets.read)
    )
    return Observation(
        at=sources.clock(),
        clock=sources.now(),
        parts=parts,
        end_offsets=end_offsets,
        states=tuple(_state_status(state, sources.routing) for state in sources.states.values()),
        instances=tuple(sorted(member.instance for member in sources.routing.members())),
    )


def _state_status(state: NamedState, routing: Routing) -> StateStatus:
    """Return the roles of this instance for a state. Its lag is that of the partitions for which it may answer."""
    partitions, lags, unowned = roles_of(state, routing)
    return StateStatus(
        name=state.name,
        topic=state.topic,
        roles={str(role): count for role, count in partitions.items()},
        lag=lags.total() - lags[Role.ELSEWHERE],
        unowned=unowned,
    )


async def _gather(session: ClientSession, sources: Sources, record: Record, every_s: float) -> None:
    while True:
        begun = sources.clock()
        try:
            record(await observe(session, sources))
        except Exception:  # reads must not depend on the console
            log.exception("the loops could not be sampled")
        await asyncio.sleep(max(0.1, begun + every_s - sources.clock()))
