"""Computes the metrics of the loop from two observations: pure."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypedDict

from contracts.api.loop import (
    ApiFailure,
    ApiStatus,
    BreakerState,
    JobStatus,
    LoopMetrics,
    ProcessStatus,
    StateStatus,
    TopicStatus,
    WorkerStatus,
)
from contracts.metrics import job, worker
from services.query.console.components import components, unmonitored
from services.query.console.observation import Increase
from services.query.console.quantile import quantile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contracts import Application
    from services.query.console.observation import Observation
    from services.query.console.scrape import ScrapeResult

JOB, WORKER = "job", "enrichment"
BREAKERS: dict[float, BreakerState] = {0.0: "closed", 1.0: "half-open", 2.0: "open"}


class _Part(TypedDict):
    url: str
    up: bool
    error: str | None
    unreachable_s: float


def figures(application: Application, before: Observation, now: Observation, away: Mapping[str, float]) -> LoopMetrics:
    """Return the current metrics of the loop, with rates since `before`. `away` has the silence of each address."""
    growth = Increase(before, now)
    kinds = {part.target.kind for part in now.parts}
    return LoopMetrics(
        application=application.name,
        components=components(application),
        at=now.clock,
        kafka=now.end_offsets is not None,
        topics=_topics(application, growth, now),
        job=tuple(_job(part, growth, now, away) for part in _parts(now, JOB)),
        workers=tuple(_worker(part, growth, away) for part in _parts(now, WORKER)),
        others={
            kind: tuple(ProcessStatus(**_part(part, away)) for part in _parts(now, kind))
            for kind in sorted(kinds - {JOB, WORKER})
        },
        unmonitored=unmonitored(application, kinds),
        apis=tuple(_api(name, growth, now) for name in sorted({*application.called_apis})),
        states=tuple(
            StateStatus(
                name=state.name,
                topic=state.topic,
                roles={str(role): count for role, count in state.roles.items()},
                lag=state.lag,
                unowned=state.unowned,
            )
            for state in now.states
        ),
        instances=now.instances,
    )


def _parts(observation: Observation, kind: str) -> Iterator[ScrapeResult]:
    return (part for part in observation.parts if part.target.kind == kind)


def topics_of(application: Application) -> dict[str, str]:
    """The topics of an application's loop, by purpose."""
    purposes = ("events", "feedback", "snapshots", "dead_letters")
    return {name: str(getattr(application.topics, name)) for name in purposes if name in components(application)}


def _topics(application: Application, growth: Increase, now: Observation) -> dict[str, TopicStatus]:
    end_offsets = now.end_offsets or {}
    return {
        what: TopicStatus(
            name=name,
            end=sum(end_offsets[name].values()) if name in end_offsets else None,
            rate=growth.topic(name),
            partitions=len(end_offsets.get(name, ())),
        )
        for what, name in topics_of(application).items()
    }


def _part(one: ScrapeResult, away: Mapping[str, float]) -> _Part:
    url = one.target.url
    return {"url": url, "up": one.samples is not None, "error": one.error, "unreachable_s": away.get(url, 0.0)}


def _job(one: ScrapeResult, growth: Increase, now: Observation, away: Mapping[str, float]) -> JobStatus:
    found, part = one.samples, _part(one, away)
    if found is None:
        return JobStatus(**part)
    committed, watermark = found.total(job.COMMITTED_AT) or None, found.total(job.WATERMARK)
    return JobStatus(
        **part,
        starting=found.total(job.STARTS) == 0,
        read=growth.part(part["url"], job.RECORDS),
        late=growth.part(part["url"], job.LATE),
        lag=_whole(found.total(job.LAG)),
        keys=_whole(found.smallest(job.STATE_KEYS)),  # the operator that drops duplicates has one for each delta
        batch_s=found.total(job.BATCH_SECONDS) if committed else None,
        pause_s=found.total(job.PAUSE_SECONDS) if committed else None,
        committed_s=now.clock.timestamp() - committed if committed else None,
        watermark=datetime.fromtimestamp(watermark, UTC) if watermark else None,
        failures=_whole(found.total(job.FAILURES)),
    )


def _worker(one: ScrapeResult, growth: Increase, away: Mapping[str, float]) -> WorkerStatus:
    found, part = one.samples, _part(one, away)
    if found is None:
        return WorkerStatus(**part)
    return WorkerStatus(
        **part,
        snapshots=growth.part(part["url"], worker.SNAPSHOTS),
        calls=growth.part(part["url"], worker.CALLS),
        lag=_whole(found.total(worker.LAG)),
        in_flight=_whole(found.total(worker.IN_FLIGHT)),
        waiting=_whole(found.total(worker.WAITING)),
        partitions=_whole(found.total(worker.PARTITIONS)),
        paused=bool(found.total(worker.PAUSED)),
    )


def _api(name: str, growth: Increase, now: Observation) -> ApiStatus:
    calls, sought = (
        growth.rate(WORKER, worker.CALLS, "api", "outcome"),
        growth.by(WORKER, worker.CACHE, "api", "outcome"),
    )
    buckets = growth.buckets(WORKER, worker.CALL_SECONDS, "api").get(name, {})
    total = sum(count for (api, _), count in sought.items() if api == name)
    return ApiStatus(
        name=name,
        calls={outcome: rate for (api, outcome), rate in calls.items() if api == name},
        retries=growth.rate(WORKER, worker.RETRIES, "api").get((name,)),
        cached=sought[name, "hit"] / total if total else None,
        p50_ms=milliseconds(quantile(0.5, buckets)),
        p95_ms=milliseconds(quantile(0.95, buckets)),
        p99_ms=milliseconds(quantile(0.99, buckets)),
        breaker=breaker(name, now),
        failure=_failure(name, now),
        queued=round(now.divided(WORKER, worker.QUEUED, "api")[name,]),
    )


def breaker(api: str, now: Observation) -> BreakerState | None:
    """Return the worst state of an API's breakers; a worker has one for its enrichments and one for each webhook.

    None if no worker responds.
    """
    values = [samples.largest(worker.BREAKER, "api", api) for _, samples in now.of(WORKER)]
    return BREAKERS.get(max(values), "closed") if values else None


def _failure(api: str, now: Observation) -> ApiFailure | None:
    """The latest failure that any worker reports, counted at all workers that report the same reason."""
    counts: Counter[str] = Counter()
    latest: tuple[float, str] | None = None
    for _, samples in now.of(WORKER):
        at = samples.largest(worker.BREAKER_FAILED_AT, "api", api)
        for (name, reason), count in samples.divided(worker.BREAKER_FAILURES, "api", "reason").items():
            if name == api:
                counts[reason] += round(count)
                latest = max(latest or (at, reason), (at, reason))
    if latest is None:
        return None
    return ApiFailure(reason=latest[1], count=counts[latest[1]], at=datetime.fromtimestamp(latest[0], UTC))


def milliseconds(seconds: float | None) -> float | None:
    """Seconds, in the form of the responses."""
    return None if seconds is None else round(seconds * 1000, 3)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
