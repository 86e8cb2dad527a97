"""One observation of the loop, and the increase of its counters between two observations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from services.query.cluster import Role
from services.query.console.components import works_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from contracts import Application
    from contracts.metrics import Metric
    from contracts.model.named_state import NamedState
    from services.query.cluster import Routing
    from services.query.console.end_offsets import Offsets
    from services.query.console.samples import Samples
    from services.query.console.scrape import ScrapeResult

Key = tuple[str, ...]
Read = Callable[["Samples"], "dict[Key, float]"]


class StateObservation(NamedTuple):
    """One named state on this instance: its partitions by role, and its lag."""

    name: str
    topic: str
    roles: Mapping[Role, int]
    lag: int
    unowned: int
    """Partitions without a known owner."""


@dataclass(frozen=True)
class Observation:
    """The loops of a suite, or one of them, at one time.

    `at` is in seconds of a monotonic clock; `end_offsets` is None while the broker is unreachable.
    """

    at: float
    clock: datetime
    parts: tuple[ScrapeResult, ...]
    end_offsets: Offsets | None
    states: tuple[StateObservation, ...]
    instances: tuple[str, ...] = ()

    def of_application(self, application: Application) -> Observation:
        """Return what belongs to one application: the targets that work for it, its samples, and its states."""
        mine = (part for part in self.parts if works_for(part.target.kind, application))
        parts = tuple(one._replace(samples=one.samples and one.samples.of(application.name)) for one in mine)
        states = tuple(state for state in self.states if state.name in application.state_names)
        return replace(self, parts=parts, states=states)

    def of(self, kind: str) -> Iterator[tuple[str, Samples]]:
        """Return the targets of a kind that answered, by their address."""
        return ((part.target.url, part.samples) for part in self.parts if part.target.kind == kind and part.samples)

    def samples(self, url: str) -> Samples | None:
        """Return the samples of the target at this address."""
        return next((part.samples for part in self.parts if part.target.url == url), None)

    def total(self, kind: str, metric: Metric) -> float | None:
        """Return a metric summed over the targets of a kind; None when no target has it."""
        totals = [found for _, samples in self.of(kind) if (found := samples.total(metric)) is not None]
        return sum(totals) if totals else None

    def divided(self, kind: str, metric: Metric, *labels: str) -> Counter[Key]:
        """Return a metric by its labels, summed over the targets of a kind."""
        found: Counter[Key] = Counter()
        for _, samples in self.of(kind):
            found.update(samples.divided(metric, *labels))
        return found


def observe_states(states: Mapping[str, NamedState], routing: Routing) -> tuple[StateObservation, ...]:
    """Return the roles and the lag of this instance for each state."""
    return tuple(_observe_state(state, routing) for state in states.values())


def _observe_state(state: NamedState, routing: Routing) -> StateObservation:
    counts: Counter[Role] = Counter()
    lag = unowned = 0
    for number in range(state.partitions):
        partition_status = routing.partition_status(state.name, number)
        counts[partition_status.role] += 1
        lag += partition_status.lag if partition_status.role is not Role.ELSEWHERE else 0
        here = partition_status.role in (Role.OWNER, Role.STANDBY)
        unowned += not here and not routing.owners(state.name, number)
    return StateObservation(state.name, state.topic, dict(counts), lag, unowned)


class Increase:
    """The increase of counters between two observations. A restarted target has counted from 0."""

    def __init__(self, before: Observation, after: Observation) -> None:
        self._before = before
        self._after = after
        self.seconds = max(after.at - before.at, 0.0)

    def by(self, kind: str, metric: Metric, *labels: str) -> Counter[Key]:
        """Return the increase by labels, summed over the targets of a kind that answered both times."""
        return self._sum(kind, lambda samples: samples.divided(metric, *labels))

    def rate(self, kind: str, metric: Metric, *labels: str) -> dict[Key, float]:
        """Return the increase per second; nothing after the first observation."""
        return self._per_second(self.by(kind, metric, *labels))

    def buckets(self, kind: str, metric: Metric, label: str) -> dict[str, dict[float, float]]:
        """Return the increase of a histogram's buckets by their bounds."""
        found: dict[str, dict[float, float]] = {}
        for (name, bound), count in self._sum(kind, lambda samples: samples.buckets(metric, label)).items():
            found.setdefault(name, {})[float(bound)] = count
        return found

    def part(self, url: str, metric: Metric) -> float | None:
        """Return the rate of one target's counter; None when it did not answer both times."""
        grown = self._grown(url, lambda samples: samples.divided(metric))
        return None if grown is None else self._per_second(grown).get(())

    def topic(self, name: str) -> float | None:
        """Return the records per second written to a topic; None when unknown."""
        before, after = (self._before.end_offsets or {}).get(name), (self._after.end_offsets or {}).get(name)
        if before is None or after is None or not self.seconds:
            return None
        return sum(max(0, end - before.get(number, end)) for number, end in after.items()) / self.seconds

    def _sum(self, kind: str, read: Read) -> Counter[Key]:
        found: Counter[Key] = Counter()
        for url, _ in self._after.of(kind):
            found.update(self._grown(url, read) or {})
        return found

    def _grown(self, url: str, read: Read) -> dict[Key, float] | None:
        earlier, later = self._before.samples(url), self._after.samples(url)
        if earlier is None or later is None:
            return None
        before = read(earlier)
        return {
            key: count - at if count >= (at := before.get(key, 0.0)) else count for key, count in read(later).items()
        }

    def _per_second(self, grown: Mapping[Key, float]) -> dict[Key, float]:
        return {key: count / self.seconds for key, count in grown.items()} if self.seconds else {}
