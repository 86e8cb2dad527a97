"""The metrics history of the last ten minutes, from which /v1/loop is answered. No I/O."""

from __future__ import annotations

from collections import Counter, deque
from itertools import pairwise
from typing import TYPE_CHECKING

from contracts import Emit
from contracts.api.loop import HealthReport, LoopMetrics, LoopResponse, MetricsPoint
from contracts.metrics import job, worker
from services.query.console.figures import buckets_by_api, figures, quantile_ms
from services.query.console.health_report import health_report
from services.query.console.observation import Span

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contracts import Application
    from services.query.console.observation import Observation

KEPT_S = 600.0
RATES_S = 10.0
"""The window of rates and latencies."""


class MetricsHistory:
    """The latest observations of an application's loop, and the points of the last ten minutes."""

    def __init__(self, application: Application, every_s: float) -> None:
        self._application = application
        self._every_s = every_s
        self._observations: deque[Observation] = deque()
        self._points: deque[MetricsPoint] = deque(maxlen=max(1, round(KEPT_S / every_s)))
        self._failures: deque[float | None] = deque(maxlen=self._points.maxlen)
        self._answered: dict[str, float] = {}
        self._watermark: tuple[float | None, float] = (None, 0.0)
        self._figures: LoopMetrics | None = None
        self._started_at = 0.0
        """The time of the last observation at which the job did not run, or of the first one."""

    def record(self, observation: Observation) -> None:
        """Add an observation, of which it stores what belongs to its application."""
        observation = observation.of_application(self._application)
        self._observations.append(observation)
        while len(self._observations) > 2 and observation.at - self._observations[0].at > RATES_S:  # noqa: PLR2004  # growth is between two
            self._observations.popleft()
        span = Span(self._observations[0], observation)
        found = figures(self._application, span, self._away(observation))
        self._failures.append(observation.samples.total(job.FAILURES))
        still_s, failures = self._still(observation, found), _failed(self._failures)
        self._figures = found.model_copy(update={"watermark_unchanged_s": still_s, "recent_failures": failures})
        if not self._points or any(process.starting or not process.up for process in found.job):
            self._started_at = observation.at
        self._points.append(_point(found, span))

    def answer(self, since: int | None) -> LoopResponse | None:
        """Return the response, with the points after `since` (milliseconds); None before the first observation."""
        report = self.health
        if self._figures is None or report is None:
            return None
        points = () if since is None else tuple(point for point in self._points if point.at > since)
        return LoopResponse(**dict(self._figures), health=report, every_ms=round(self._every_s * 1000), history=points)

    @property
    def health(self) -> HealthReport | None:
        """The health report of the last observation; None before the first."""
        if self._figures is None:
            return None
        application = self._application
        reads_every_s = 0.0 if application.emit is Emit.EVENT else application.emit_interval.total_seconds()
        running_s = self._observations[-1].at - self._started_at
        return health_report(self._figures, self._points, _emits_every_s(application), reads_every_s, running_s)

    @property
    def span(self) -> Span | None:
        """The two observations between which rates are computed."""
        return Span(self._observations[0], self._observations[-1]) if self._observations else None

    def _away(self, observation: Observation) -> dict[str, float]:
        """Return the seconds since each target has answered, or since the first observation."""
        for part in observation.parts:
            if part.is_up or part.target.url not in self._answered:
                self._answered[part.target.url] = observation.at
        self._answered = {part.target.url: self._answered[part.target.url] for part in observation.parts}
        return {url: observation.at - at for url, at in self._answered.items()}

    def _still(self, observation: Observation, found: LoopMetrics) -> float | None:
        """Return the seconds since the watermark advanced; an idle loop restarts the count."""
        watermark, since = observation.samples.total(job.WATERMARK), self._watermark[1]
        idle = not found.topics["events"].rate
        if idle or watermark != self._watermark[0]:
            since = observation.at
        self._watermark = (watermark, since)
        return None if watermark is None else observation.at - since


def _emits_every_s(application: Application) -> float | None:
    """Return the longest time between snapshots while records arrive; None if records need not give any."""
    if application.emit is Emit.CLOSE or application.processor is not None or application.state.where is not None:
        return None
    return application.emit_interval.total_seconds() if application.emit is Emit.BATCH else 0.0


def _point(found: LoopMetrics, span: Span) -> MetricsPoint:
    latency: Counter[float] = Counter()
    for buckets in buckets_by_api(span).values():
        latency.update(buckets)
    return MetricsPoint(
        at=round(found.at.timestamp() * 1000),
        **{purpose: topic.rate for purpose, topic in found.topics.items()},
        calls=span.rate(worker.CALLS).get(()),
        job_lag=_lag(one.lag for one in found.job),
        worker_lag=_lag(one.lag for one in found.workers),
        query_lag=sum(state.lag for state in found.states) if found.states else None,
        p50_ms=quantile_ms(0.5, latency),
        p95_ms=quantile_ms(0.95, latency),
    )


def _lag(lags: Iterable[int | None]) -> int | None:
    known = [lag for lag in lags if lag is not None]
    return sum(known) if known else None


def _failed(counts: Iterable[float | None]) -> int:
    """Return the number of failures by these counts, which begin at 0 with each start."""
    known = [count for count in counts if count is not None]
    return round(sum(max(0.0, after - before) for before, after in pairwise(known)))
