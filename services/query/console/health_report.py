"""Decides whether the loop is healthy, and if not, why: a pure function of its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.api.loop import HealthReason, HealthReport, Kind, LoopMetrics, MetricsPoint, ProcessStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

UNREACHABLE_S = 5.0
"""A process that has not answered for this long is reported: one missed scrape is not."""
WINDOW_S = 60.0
MIN_WINDOW_S = 30.0
"""The window over which a lag must grow, and the least part of it that must have been recorded."""
MIN_LAG = 100
LAG_S = 5.0
"""A lag below this many records, or below what arrives in this many seconds, is not reported."""
WAITS = 2
"""Neither is a lag of the job below what arrives in two intervals of its micro-batches, while records wait for them."""
GROWTH_S = 1.0
"""Neither is a growth below what arrives in this many seconds."""
SILENCE_S = 20.0
FIRST_SILENCE_S = 5.0
MIN_SILENT_RECORDS = 10
"""The job is silent if it published nothing for this long, or its first batch, while this many records arrived."""
DEAD_LETTER_RATIO = 0.001
"""The ratio of dead letters to records above which they are reported."""
WATERMARK_S = 600.0
BATCH_S = 60.0
BATCHES = 3
"""The job is stuck if it commits no batch for three batch lengths and a minute; the watermark, after ten minutes."""


def health_report(
    metrics: LoopMetrics,
    history: Sequence[MetricsPoint],
    emits_every_s: float | None = 0.0,
    reads_every_s: float = 0.0,
    running_s: float = float("inf"),
) -> HealthReport:
    """Evaluate all rules; the reasons that are likely to cause others come first.

    While records arrive, a running job publishes at least once in `emits_every_s`; None: they need not give snapshots.
    The job reads records that wait every `reads_every_s`; 0 in real-time mode. It runs since `running_s`.
    """
    reasons = (
        *_kafka(metrics),
        *_processes(metrics),
        *_states(metrics),
        *_job(metrics),
        *_silence(metrics, history, emits_every_s, running_s),
        *_breakers(metrics),
        *_lags(metrics, history, reads_every_s),
        *_dead_letters(history),
    )
    unknown = metrics.unmonitored and not reasons
    return HealthReport(healthy=None if unknown else not reasons, reasons=reasons)


def _kafka(metrics: LoopMetrics) -> Iterator[HealthReason]:
    if not metrics.kafka:
        message = "Kafka does not answer: no records flow, and the metrics shown may be old"
        yield _reason("kafka_unreachable", "kafka", message, "Start the brokers again, or check STATELOOP_KAFKA")


def _processes(metrics: LoopMetrics) -> Iterator[HealthReason]:
    by_component = (("job", metrics.job), ("workers", metrics.workers), *metrics.others.items())
    for component, processes in by_component:
        for process in processes:
            if not process.up and process.unreachable_s >= UNREACHABLE_S:
                yield _unreachable(component, process)


def _unreachable(component: str, process: ProcessStatus) -> HealthReason:
    name = {"job": "The job", "workers": "A worker"}.get(component, f"A process ({component})")
    message = f"{name} at {process.url} has not answered for {process.unreachable_s:.0f} s: {process.error}"
    action = "Read its log and start it again; if it was removed, remove it from STATELOOP_SCRAPE_TARGETS"
    return _reason("process_unreachable", component, message, action)


def _states(metrics: LoopMetrics) -> Iterator[HealthReason]:
    for state in metrics.states:
        if count := state.roles.get("catching_up", 0):
            message = (
                f"The query service is still catching up with {state.name}: {count} partitions, {state.lag:,} records"
            )
            yield _reason("catching_up", "query", message, "Wait: reads of these keys succeed once it has caught up")
        elif state.unowned:
            message = f"No instance owns {state.unowned} partitions of {state.name}"
            action = "Check the instances of the query service: one is down, or they cannot reach the brokers"
            yield _reason("unowned", "query", message, action)


def _job(metrics: LoopMetrics) -> Iterator[HealthReason]:
    if metrics.recent_failures:
        message = f"The job's query failed {metrics.recent_failures} times in the last ten minutes, and was restarted"
        yield _reason("job_failing", "job", message, "Find the cause in the job's log")
    for process in metrics.job:
        if process.starting:
            message = f"The job at {process.url} is starting: it publishes nothing until its query runs"
            action = "Wait: it resumes from its checkpoint. If it takes minutes, read its log"
            yield _reason("job_starting", "job", message, action)
        allowance_s = BATCHES * (process.batch_s or 0.0)
        if process.committed_s is not None and process.committed_s > allowance_s + BATCH_S:
            message = f"The job has committed no batch for {process.committed_s:.0f} s"
            yield _reason("batch_stuck", "job", message, "Read its log; if it hangs, restart it: no record is lost")
        if metrics.watermark_unchanged_s is not None and metrics.watermark_unchanged_s > allowance_s + WATERMARK_S:
            minutes = metrics.watermark_unchanged_s / 60
            message = f"The watermark has not advanced for {minutes:.0f} min while records arrive"
            action = (
                "No window began meanwhile: check the devices' first_seen. No key expires until the watermark advances"
            )
            yield _reason("watermark_stuck", "job", message, action)


def _silence(
    metrics: LoopMetrics, history: Sequence[MetricsPoint], emits_every_s: float | None, running_s: float
) -> Iterator[HealthReason]:
    """Records arrive, and a running job publishes nothing. Its own metrics change with each batch only.

    Until it has run for the time after which silence is reported, a job without a batch is starting.
    """
    if emits_every_s is None or any(process.starting or not process.up for process in metrics.job):
        return
    is_new = any(process.committed_s is None for process in metrics.job)
    silence_ms = 1000 * (emits_every_s + (FIRST_SILENCE_S if is_new else SILENCE_S))
    recent = _last(history, silence_ms)
    published = any(point.snapshots != 0 or point.dead_letters for point in recent)
    if history[-1].at - history[0].at < silence_ms or published:
        return
    rate = sum((point.events or 0.0) + (point.feedback or 0.0) for point in recent) / len(recent)
    if rate * SILENCE_S < MIN_SILENT_RECORDS:
        return
    message = f"The job publishes nothing{' yet' * is_new}, while {rate:.1f} records a second arrive"
    wait = "Wait: it has just started. If it takes minutes, read its log"
    hangs = "Read its log; if it hangs, restart it: no record is lost. If all records are duplicates, this is no fault"
    kind: Kind = "job_starting" if is_new and running_s < emits_every_s + SILENCE_S else "job_silent"
    yield _reason(kind, "job", message, wait if is_new else hangs)


def _breakers(metrics: LoopMetrics) -> Iterator[HealthReason]:
    for api in metrics.apis:
        if api.breaker in ("open", "half-open"):
            message = f"The API {api.name} is down: its circuit breaker is {api.breaker}, {api.queued:,} requests wait"
            if (last := api.failure) is not None:
                message += f". The last {last.count:,} calls that failed: {last.reason}, at {last.at:%H:%M:%S} UTC"
            action = "Check the API itself; the waiting requests are sent when it is available again"
            yield _reason("breaker_open", f"api:{api.name}", message, action)


def _lags(metrics: LoopMetrics, history: Sequence[MetricsPoint], reads_every_s: float) -> Iterator[HealthReason]:
    rates = {kind: topic.rate or 0.0 for kind, topic in metrics.topics.items()}
    read, snapshots = rates.get("events", 0.0) + rates.get("feedback", 0.0), rates.get("snapshots", 0.0)
    recent = _last(history, 1000 * WINDOW_S)
    job = "Check its CPU and the length of its batches; give it more cores (docs/how-to/scaling.md)"
    workers = "Start more workers, up to one for each partition, or raise the concurrency of the API"
    query = "Check the query service's CPU and disk, or start another instance"
    waits_s = max(LAG_S, WAITS * reads_every_s)
    for component, name, lags, least, rate, action in (
        ("job", "the job", [point.job_lag for point in recent], waits_s * read, read, job),
        ("workers", "the workers", [point.worker_lag for point in recent], LAG_S * snapshots, snapshots, workers),
        ("query", "the query service", [point.query_lag for point in recent], LAG_S * snapshots, snapshots, query),
    ):
        known = [lag for lag in lags if lag is not None]
        if recent and recent[-1].at - recent[0].at >= MIN_WINDOW_S * 1000 and _grows(known, least, rate):
            message = f"The lag of {name} grows: {known[-1]:,} records wait"
            yield _reason("lag_growing", component, message, action)


def _grows(lags: Sequence[int], least: float, rate: float) -> bool:
    """Return whether the least of the last third is well above the most of the first, so that a swing is no growth."""
    third = len(lags) // 3
    if not third or lags[-1] < max(MIN_LAG, least):
        return False
    return min(lags[-third:]) - max(lags[:third]) > max(MIN_LAG, GROWTH_S * rate)


def _dead_letters(history: Sequence[MetricsPoint]) -> Iterator[HealthReason]:
    recent = _last(history, 1000 * WINDOW_S)
    dead_letters = sum(point.dead_letters or 0.0 for point in recent)
    records = sum((point.events or 0.0) + (point.feedback or 0.0) for point in recent)
    if dead_letters > DEAD_LETTER_RATIO * records:
        per_minute = 60 * dead_letters / len(recent)
        message = f"Dead letters increase: about {max(1, round(per_minute))} in the last minute"
        action = "Read their reasons; fix the cause, and redrive them with stateloop redrive"
        yield _reason("dead_letters_increasing", "dead_letters", message, action)


def _last(history: Sequence[MetricsPoint], milliseconds: float) -> list[MetricsPoint]:
    return [point for point in history if point.at >= history[-1].at - milliseconds]


def _reason(kind: Kind, component: str, message: str, action: str) -> HealthReason:
    return HealthReason(kind=kind, component=component, message=message, action=action)
