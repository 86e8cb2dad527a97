"""Computes the metrics of the loop from two observations: pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from contracts.api.loop import (
    ApiFailure,
    ApiStatus,
    BreakerState,
    JobStatus,
    LoopMetrics,
    ProcessStatus,
    TopicStatus,
    WorkerStatus,
)
from contracts.metrics import job, worker
from services.query.console.components import components, unmonitored
from services.query.console.samples import quantile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contracts import Application
    from services.query.console.observation import Observation, Span
    from services.query.console.samples import Samples

JOB, WORKER = "job", "enrichment"
BREAKERS: dict[float, BreakerState] = {0.0: "closed", 1.0: "half-open", 2.0: "open"}


def figures(application: Application, span: Span, away: Mapping[str, float]) -> LoopMetrics:
    """Return the current metrics of the loop, with rates of the span. `away` has the silence of each address."""
    now = span.now
    kinds = {part.target.kind for part in now.parts}
    latencies = buckets_by_api(span)
    return LoopMetrics(
        application=application.name,
        components=components(application),
        at=now.clock,
        kafka=now.end_offsets is not None,
        topics=_topics(application, span),
        job=tuple(_job(status, span) for status in _processes(now, JOB, away)),
        workers=tuple(_worker(status, span) for status in _processes(now, WORKER, away)),
        others={kind: _processes(now, kind, away) for kind in sorted(kinds - {JOB, WORKER})},
        unmonitored=unmonitored(application, kinds),
        apis=tuple(_api(name, span, latencies.get(name, {})) for name in sorted({*application.called_apis})),
        states=now.states,
        instances=now.instances,
    )


def topics_of(application: Application) -> dict[str, str]:
    """The topics of an application's loop, by purpose."""
    purposes = ("events", "feedback", "snapshots", "dead_letters")
    return {name: str(getattr(application.topics, name)) for name in purposes if name in components(application)}


def _topics(application: Application, span: Span) -> dict[str, TopicStatus]:
    end_offsets = span.now.end_offsets or {}
    return {
        purpose: TopicStatus(
            name=name,
            end=sum(end_offsets[name].values()) if name in end_offsets else None,
            rate=span.topic_rate(name),
            partitions=len(end_offsets.get(name, ())),
        )
        for purpose, name in topics_of(application).items()
    }


def _processes(now: Observation, kind: str, away: Mapping[str, float]) -> tuple[ProcessStatus, ...]:
    return tuple(
        ProcessStatus(
            url=part.target.url, up=part.is_up, error=part.error, unreachable_s=away.get(part.target.url, 0.0)
        )
        for part in now.parts
        if part.target.kind == kind
    )


def _job(status: ProcessStatus, span: Span) -> JobStatus:
    if not status.up:
        return JobStatus(**dict(status))
    samples, url = span.now.samples, status.url
    committed, watermark = samples.total(job.COMMITTED_AT, url=url) or None, samples.total(job.WATERMARK, url=url)
    return JobStatus(
        **dict(status),
        starting=samples.total(job.STARTS, url=url) == 0,
        read=span.rate(job.RECORDS, url=url).get(()),
        late=span.rate(job.LATE, url=url).get(()),
        lag=_whole(samples.total(job.LAG, url=url)),
        # the operator that drops duplicates has a key for each delta
        keys=_whole(min(samples.values(job.STATE_KEYS, url=url), default=None)),
        batch_s=samples.total(job.BATCH_SECONDS, url=url) if committed else None,
        pause_s=samples.total(job.PAUSE_SECONDS, url=url) if committed else None,
        committed_s=span.now.clock.timestamp() - committed if committed else None,
        watermark=datetime.fromtimestamp(watermark, UTC) if watermark else None,
        failures=_whole(samples.total(job.FAILURES, url=url)),
    )


def _worker(status: ProcessStatus, span: Span) -> WorkerStatus:
    if not status.up:
        return WorkerStatus(**dict(status))
    samples, url = span.now.samples, status.url
    return WorkerStatus(
        **dict(status),
        snapshots=span.rate(worker.SNAPSHOTS, url=url).get(()),
        calls=span.rate(worker.CALLS, url=url).get(()),
        lag=_whole(samples.total(worker.LAG, url=url)),
        in_flight=_whole(samples.total(worker.IN_FLIGHT, url=url)),
        waiting=_whole(samples.total(worker.WAITING, url=url)),
        partitions=_whole(samples.total(worker.PARTITIONS, url=url)),
        paused=bool(samples.total(worker.PAUSED, url=url)),
    )


def _api(name: str, span: Span, latency: Mapping[float, float]) -> ApiStatus:
    lookups = span.increase(worker.CACHE, "outcome", api=name)
    all_lookups = sum(lookups.values())
    return ApiStatus(
        name=name,
        calls={outcome: rate for (outcome,), rate in span.rate(worker.CALLS, "outcome", api=name).items()},
        retries=span.rate(worker.RETRIES, api=name).get(()),
        cached=lookups.get(("hit",), 0.0) / all_lookups if all_lookups else None,
        p50_ms=quantile_ms(0.5, latency),
        p95_ms=quantile_ms(0.95, latency),
        p99_ms=quantile_ms(0.99, latency),
        breaker=breaker(name, span.now),
        failure=_failure(name, span.now.samples),
        queued=round(span.now.samples.total(worker.QUEUED, api=name) or 0),
    )


def breaker(api: str, now: Observation) -> BreakerState | None:
    """Return the worst state of an API's breakers; a worker has one for its enrichments and one for each webhook.

    None if no worker responds.
    """
    if not any(part.is_up and part.target.kind == WORKER for part in now.parts):
        return None
    return BREAKERS.get(max(now.samples.values(worker.BREAKER, api=api), default=0.0), "closed")


def _failure(api: str, samples: Samples) -> ApiFailure | None:
    """The latest failure that any worker reports, counted at all workers that report the same reason."""
    failures = samples.sums(worker.BREAKER_FAILURES, "url", "reason", api=api)
    if not failures:
        return None
    times = (
        (max(samples.values(worker.BREAKER_FAILED_AT, api=api, url=url), default=0.0), why) for url, why in failures
    )
    at, latest = max(times)
    count = sum(round(count) for (_, reason), count in failures.items() if reason == latest)
    return ApiFailure(reason=latest, count=count, at=datetime.fromtimestamp(at, UTC))


def buckets_by_api(span: Span) -> dict[str, dict[float, float]]:
    """Return the number of recent calls to each API that took no longer than each bound, in seconds."""
    buckets: dict[str, dict[float, float]] = {}
    for (api, bound), count in span.increase(worker.CALL_SECONDS, "api", "le").items():
        buckets.setdefault(api, {})[float(bound)] = count
    return buckets


def quantile_ms(share: float, buckets: Mapping[float, float]) -> float | None:
    """Return a quantile in milliseconds, as the responses have it; None without values."""
    seconds = quantile(share, buckets)
    return None if seconds is None else round(seconds * 1000, 3)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
