"""One observation of the loop, and the increase of its counters between two observations."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from services.query.console.components import works_for
from services.query.console.samples import Key, Samples

if TYPE_CHECKING:
    from datetime import datetime

    from contracts import Application
    from contracts.api.loop import StateStatus
    from contracts.metrics import Metric
    from services.query.console.scrape import ScrapeResult

EndOffsets = dict[str, dict[int, int]]
"""The end offset of each partition, by topic."""


@dataclass(frozen=True)
class Observation:
    """The loops of a suite, or one of them, at one time.

    `at` is in seconds of a monotonic clock; `end_offsets` is None while the broker is unreachable.
    """

    at: float
    clock: datetime
    parts: tuple[ScrapeResult, ...]
    end_offsets: EndOffsets | None
    states: tuple[StateStatus, ...]
    instances: tuple[str, ...] = ()

    @cached_property
    def samples(self) -> Samples:
        """The samples of all targets that answered."""
        return Samples(sample for part in self.parts for sample in part.samples)

    def of_application(self, application: Application) -> Observation:
        """Return what belongs to one application: the targets that work for it, its samples, and its states."""
        parts = (part for part in self.parts if works_for(part.target.kind, application))
        states = tuple(state for state in self.states if state.name in application.state_names)
        return replace(self, parts=tuple(part.of_application(application.name) for part in parts), states=states)


class Span(NamedTuple):
    """Two observations of a loop, between which its counters grew."""

    before: Observation
    now: Observation

    @property
    def seconds(self) -> float:
        """The time between the observations; 0 after the first observation."""
        return max(self.now.at - self.before.at, 0.0)

    def increase(self, metric: Metric, *by: str, **labels: str) -> dict[Key, float]:
        """Return the increase as `Samples.sums` does, summed over the targets that answered both times.

        A restarted target has counted from 0.
        """
        answered = {part.target.url for part in self.before.parts if part.is_up}
        before, now = (observation.samples.sums(metric, "url", *by, **labels) for observation in self)
        found: dict[Key, float] = defaultdict(float)
        for (url, *key), count in now.items():
            if url in answered:
                earlier = before.get((url, *key), 0.0)
                found[tuple(key)] += count - earlier if count >= earlier else count
        return dict(found)

    def rate(self, metric: Metric, *by: str, **labels: str) -> dict[Key, float]:
        """Return the increase per second; nothing after the first observation."""
        return {
            key: count / self.seconds for key, count in self.increase(metric, *by, **labels).items() if self.seconds
        }

    def topic_rate(self, topic: str) -> float | None:
        """Return the records per second written to a topic; None when unknown."""
        before, now = ((observation.end_offsets or {}).get(topic) for observation in self)
        if before is None or now is None or not self.seconds:
            return None
        return sum(max(0, end - before.get(number, end)) for number, end in now.items()) / self.seconds
