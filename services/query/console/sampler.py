"""Samples the loops of a suite at an interval while the service runs: each target once for all applications."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from aiohttp import ClientSession, DummyCookieJar

from contracts.api.loop import StateStatus
from services.query.cluster import Role, roles_of
from services.query.console.observation import Observation
from services.query.console.scrape import ScrapeTarget, scrape
from services.runtime.errors import KafkaRequestError
from services.runtime.kafka.values import LATEST, Partition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection

    from contracts.model.named_state import NamedState
    from services.query.console.observation import EndOffsets
    from services.query.dependencies import Dependencies
    from services.runtime.kafka.interfaces import Admin

log = logging.getLogger(__name__)

ANSWER_S = 2.0
MIN_PAUSE_S = 0.1


class Sampler:
    """Observes the scrape targets of the settings, these topics, and the states of this instance."""

    def __init__(self, dependencies: Dependencies, admin: Admin, topics: Collection[str]) -> None:
        self._dependencies = dependencies
        self._admin = admin
        self._topics = topics
        targets = dependencies.settings.scrape_targets
        self._targets = [ScrapeTarget(kind, url) for kind, urls in targets.items() for url in urls]

    @asynccontextmanager
    async def sampling(self, record: Callable[[Observation], None]) -> AsyncIterator[None]:
        """Pass an observation to `record` at each interval, in the background."""
        async with ClientSession(cookie_jar=DummyCookieJar(), trust_env=False) as session:
            task = asyncio.create_task(self._run(session, record), name="console")
            try:
                yield
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def observe(self, session: ClientSession) -> Observation:
        """Observe the targets and the broker concurrently."""
        parts, end_offsets = await asyncio.gather(
            scrape(session, self._targets), asyncio.to_thread(self.read_end_offsets)
        )
        states, routing = self._dependencies.states.values(), self._dependencies.routing
        return Observation(
            at=self._dependencies.clock(),
            clock=datetime.fromtimestamp(self._dependencies.now() / 1000, UTC),
            parts=parts,
            end_offsets=end_offsets,
            states=tuple(self._state_status(state) for state in states),
            instances=tuple(sorted(member.instance for member in routing.members())),
        )

    def read_end_offsets(self) -> EndOffsets | None:
        """Return the end offsets of the existing topics whose partitions all have a leader.

        It blocks, and returns None while the broker does not answer.
        """
        try:
            counts = self._admin.partition_counts(within_s=ANSWER_S)  # one request, not one for each topic
            existing = [topic for topic in self._topics if topic in counts]
            partitions = [Partition(topic, number) for topic in existing for number in range(counts[topic])]
            found = self._admin.available_offsets(dict.fromkeys(partitions, LATEST), ANSWER_S)
        except KafkaRequestError:
            return None
        end_offsets: EndOffsets = {}
        for (topic, number), offset in found.items():
            end_offsets.setdefault(topic, {})[number] = offset
        return {topic: offsets for topic, offsets in end_offsets.items() if len(offsets) == counts[topic]}

    def _state_status(self, state: NamedState) -> StateStatus:
        """Return the roles of this instance for a state. Its lag is that of the partitions that it may answer for."""
        partitions, lags, unowned = roles_of(state, self._dependencies.routing)
        return StateStatus(
            name=state.name,
            topic=state.topic,
            roles={str(role): count for role, count in partitions.items()},
            lag=lags.total() - lags[Role.ELSEWHERE],
            unowned=unowned,
        )

    async def _run(self, session: ClientSession, record: Callable[[Observation], None]) -> None:
        every_s, clock = self._dependencies.settings.scrape_every.total_seconds(), self._dependencies.clock
        while True:
            begun = clock()
            try:
                record(await self.observe(session))
            except Exception:  # reads must not depend on the console
                log.exception("the loops could not be sampled")
            await asyncio.sleep(max(MIN_PAUSE_S, begun + every_s - clock()))
