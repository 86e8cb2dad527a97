"""Observations of a loop of flights, computed without a loop."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from contracts.api.loop import DeadLetterSummary, StateStatus
from contracts.metrics import job, worker
from services.query.console.observation import Observation
from services.query.console.scrape import ScrapeResult, ScrapeTarget, parse_result
from tests.services.query.console.exposed import Exposed, exposed

if TYPE_CHECKING:
    from services.query.console.observation import EndOffsets
    from tests.services.query.console.exposed import Seconds

JOB = ScrapeTarget("job", "http://127.0.0.1:9100")
DERIVE = ScrapeTarget("derive", "http://127.0.0.1:9104")
WORKERS = (ScrapeTarget("enrichment", "http://127.0.0.1:9101"), ScrapeTarget("enrichment", "http://127.0.0.1:9102"))
BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def job_part(**metrics: float) -> ScrapeResult:
    """Return a job of flights with these metrics; `lag` is that of both topics together."""
    return job_of(flights=metrics)


def job_of(**applications: dict[str, float]) -> ScrapeResult:
    """Return a job of these applications with their metrics."""
    values: Exposed = {}
    for name, metrics in applications.items():
        for metric, by_label in _job_values(metrics).items():
            values.setdefault(metric, {}).update({(name, *labels): value for labels, value in by_label.items()})
    return parse_result(JOB, exposed(values))


def _job_values(metrics: dict[str, float]) -> Exposed:
    values: Exposed = {
        job.RECORDS: {("events",): metrics.get("events", 0.0), ("feedback",): metrics.get("feedback", 0.0)},
        job.LAG: {("events",): metrics.get("lag", 0.0), ("feedback",): 0.0},
        job.COMMITTED_AT: {(): metrics.get("committed_at", BEGIN.timestamp())},
        job.BATCH_SECONDS: {(): metrics.get("batch_s", 5.0)},
        job.STATE_KEYS: {("dedupe",): 1e9, ("state",): metrics.get("keys", 40.0)},
        job.FAILURES: {(): metrics.get("failures", 0.0)},
        job.STARTS: {(): metrics.get("starts", 1.0)},
        job.WATERMARK: {(): metrics.get("watermark", 1357000000.0)},
    }
    if not metrics.get("starts", 1.0):  # metrics of a batch are absent before the first one
        values |= {job.LAG: {}, job.STATE_KEYS: {}, job.COMMITTED_AT: {(): 0.0}, job.BATCH_SECONDS: {(): 0.0}}
    return values


def worker_part(
    target: ScrapeTarget = WORKERS[0],
    seconds: Seconds | None = None,
    failure: tuple[str, float, float] | None = None,
    **metrics: float,
) -> ScrapeResult:
    """Return a worker with these metrics; `failure` has reason, count and time."""
    values: Exposed = {
        worker.SNAPSHOTS: {(): metrics.get("snapshots", 0.0)},
        worker.CALLS: {
            ("reference", "aircraft", "result"): metrics.get("result", 0.0),
            ("reference", "weather", "absence"): metrics.get("absence", 0.0),
        },
        worker.CACHE: {("reference", "hit"): metrics.get("hit", 0.0), ("reference", "miss"): metrics.get("miss", 0.0)},
        worker.ANSWERS: {("aircraft", "result"): metrics.get("result", 0.0)},
        worker.BREAKER: {("reference",): metrics.get("breaker", 0.0)},
        worker.QUEUED: {("reference",): metrics.get("queued", 0.0)},
        worker.LAG: {(): metrics.get("lag", 0.0)},
        worker.IN_FLIGHT: {(): 3.0},
        worker.PARTITIONS: {(): 2.0},
    }
    if failure is not None:
        reason, count, at = failure
        values[worker.BREAKER_FAILURES] = {("reference", reason): count}
        values[worker.BREAKER_FAILED_AT] = {("reference",): at}
    return parse_result(target, exposed(values, seconds))


def derive_part() -> ScrapeResult:
    """Return a derive worker that responds."""
    return parse_result(DERIVE, "")


def away(target: ScrapeTarget, why: str = "Connection refused") -> ScrapeResult:
    """Return the failed scrape of a target."""
    return ScrapeResult(target, error=why)


def observation(
    at: float, *parts: ScrapeResult, end_offsets: EndOffsets | None = None, states: tuple[StateStatus, ...] = ()
) -> Observation:
    """Return an observation this many seconds after BEGIN; the topics are empty by default."""
    topics = ("events", "feedback", "snapshots", "dead_letters")
    known = {name: {0: 0, 1: 0} for name in topics} | (end_offsets or {})
    return Observation(at, BEGIN + timedelta(seconds=at), parts, known, states)


def owner(name: str = "flights", lag: int = 0, catching_up: int = 0, unowned: int = 0) -> StateStatus:
    """Return the roles of a single instance for a state of four partitions."""
    roles = {"owner": 4 - catching_up, "catching_up": catching_up}
    return StateStatus(name=name, topic="snapshots", roles=roles, lag=lag, unowned=unowned)


def at_work(at: float, rate: float = 30.0, **overrides: Any) -> Observation:
    """Return a loop after so many seconds with so many events a second; `overrides` has other metrics and faults."""
    clock = datetime.now(UTC) - timedelta(seconds=overrides.get("until", at) - at)
    end_offsets = {
        "events": {0: round(rate * at)},
        "feedback": {0: round(2.2 * rate * at)},
        "snapshots": {0: round(3.2 * rate * at)},
        "dead_letters": {0: round(overrides.get("dead_letters", 3))},
    }
    job = job_part(
        events=rate * at,
        keys=140 * rate,
        lag=overrides.get("job_lag", 4),
        committed_at=clock.timestamp() - 2,
        watermark=1_357_000_000 + at,
        starts=overrides.get("starts", 1),
    )
    parts = (
        away(JOB, "Connection refused") if overrides.get("job_away") else job,
        _worker(at, rate, WORKERS[0], overrides),
        _worker(at, rate, WORKERS[1], overrides),
        derive_part(),
    )
    monitored = tuple(part for part in parts if part.target.kind not in overrides.get("unmonitored", ()))
    lag = round(overrides.get("query_lag", 0))
    own = StateStatus(name="flights", topic="snapshots", roles={"owner": 4}, lag=lag, unowned=0)
    derived = StateStatus(name="tails", topic="tails", roles={"owner": 4}, lag=0, unowned=0)
    return Observation(
        at, clock, monitored, None if overrides.get("kafka_unreachable") else end_offsets, (own, derived), ("one",)
    )


def _worker(at: float, rate: float, target: Any, overrides: dict[str, Any]) -> Any:
    seconds = {worker.CALL_SECONDS: {"reference": [0.004] * round(20 * at) + [0.03] * round(3 * at)}}
    return worker_part(
        target,
        seconds,
        snapshots=1.6 * rate * at,
        result=1.1 * rate * at,
        absence=0.03 * rate * at,
        hit=0.4 * rate * at,
        miss=0.7 * rate * at,
        lag=overrides.get("worker_lag", 7),
        breaker=overrides.get("breaker", 0),
        queued=overrides.get("queued", 0),
    )


def a_dead_letter(number: int, head: str = "{", reason: str = "malformed") -> DeadLetterSummary:
    """Return a dead letter of an event with this head; a greater number is later."""
    written = BEGIN + timedelta(seconds=number)
    return DeadLetterSummary(
        reason=reason,
        detail=head,
        key=head,
        written=written,
        topic="events",
        partition=0,
        offset=number,
        timestamp=written,
        head=head,
    )
