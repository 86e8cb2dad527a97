"""Looks at a loop of flights, made without one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from contracts.metrics import job, worker
from services.query.cluster import Role
from services.query.console.models import DeadLetterSummary
from services.query.console.observation import Observation, StateObservation
from services.query.console.samples import parse_samples
from services.query.console.scrape import ScrapeResult, ScrapeTarget
from tests.services.query.console.exposed import Exposed, exposed

if TYPE_CHECKING:
    from services.query.console.end_offsets import Offsets
    from tests.services.query.console.exposed import Seconds

JOB = ScrapeTarget("job", "http://127.0.0.1:9100")
DERIVE = ScrapeTarget("derive", "http://127.0.0.1:9104")
WORKERS = (ScrapeTarget("enrichment", "http://127.0.0.1:9101"), ScrapeTarget("enrichment", "http://127.0.0.1:9102"))
BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def job_part(**told: float) -> ScrapeResult:
    """A job that read so many records of flights, and so on; `lag` is that of both topics together."""
    return job_of(flights=told)


def job_of(**applications: dict[str, float]) -> ScrapeResult:
    """A job of these applications."""
    values: Exposed = {}
    for name, told in applications.items():
        for metric, by_label in _job_values(told).items():
            values.setdefault(metric, {}).update({(name, *labels): value for labels, value in by_label.items()})
    return ScrapeResult(JOB, parse_samples(exposed(values)))


def _job_values(told: dict[str, float]) -> Exposed:
    values: Exposed = {
        job.RECORDS: {("events",): told.get("events", 0.0), ("feedback",): told.get("feedback", 0.0)},
        job.LAG: {("events",): told.get("lag", 0.0), ("feedback",): 0.0},
        job.COMMITTED_AT: {(): told.get("committed_at", BEGIN.timestamp())},
        job.BATCH_SECONDS: {(): told.get("batch_s", 5.0)},
        job.STATE_KEYS: {("dedupe",): 1e9, ("state",): told.get("keys", 40.0)},
        job.FAILURES: {(): told.get("failures", 0.0)},
        job.STARTS: {(): told.get("starts", 1.0)},
        job.WATERMARK: {(): told.get("watermark", 1357000000.0)},
    }
    if not told.get("starts", 1.0):  # what comes with a batch is not there before one
        values |= {job.LAG: {}, job.STATE_KEYS: {}, job.COMMITTED_AT: {(): 0.0}, job.BATCH_SECONDS: {(): 0.0}}
    return values


def worker_part(
    target: ScrapeTarget = WORKERS[0],
    seconds: Seconds | None = None,
    failure: tuple[str, float, float] | None = None,
    **told: float,
) -> ScrapeResult:
    """A worker that made so many calls of each outcome, and so on; `failure` has reason, count and time."""
    values: Exposed = {
        worker.SNAPSHOTS: {(): told.get("snapshots", 0.0)},
        worker.CALLS: {
            ("reference", "aircraft", "result"): told.get("result", 0.0),
            ("reference", "weather", "absence"): told.get("absence", 0.0),
        },
        worker.CACHE: {("reference", "hit"): told.get("hit", 0.0), ("reference", "miss"): told.get("miss", 0.0)},
        worker.ANSWERS: {("aircraft", "result"): told.get("result", 0.0)},
        worker.BREAKER: {("reference",): told.get("breaker", 0.0)},
        worker.QUEUED: {("reference",): told.get("held", 0.0)},
        worker.LAG: {(): told.get("lag", 0.0)},
        worker.IN_FLIGHT: {(): 3.0},
        worker.PARTITIONS: {(): 2.0},
    }
    if failure is not None:
        reason, count, at = failure
        values[worker.BREAKER_FAILURES] = {("reference", reason): count}
        values[worker.BREAKER_FAILED_AT] = {("reference",): at}
    return ScrapeResult(target, parse_samples(exposed(values, seconds)))


def derive_part() -> ScrapeResult:
    """A derive worker that answers."""
    return ScrapeResult(DERIVE, parse_samples(""))


def away(target: ScrapeTarget, why: str = "Connection refused") -> ScrapeResult:
    """A part that does not answer."""
    return ScrapeResult(target, None, why)


def look(
    at: float, *dependencies: ScrapeResult, ends: Offsets | None = None, states: tuple[StateObservation, ...] = ()
) -> Observation:
    """A look so many seconds after the beginning; the topics are there, and empty, unless their ends are given."""
    topics = ("events", "feedback", "snapshots", "dead_letters")
    known = {name: {0: 0, 1: 0} for name in topics} | (ends or {})
    return Observation(at, BEGIN + timedelta(seconds=at), dependencies, known, states)


def owner(name: str = "flights", lag: int = 0, catching_up: int = 0, unowned: int = 0) -> StateObservation:
    """What an instance alone is to a state of four partitions."""
    return StateObservation(
        name, "snapshots", {Role.OWNER: 4 - catching_up, Role.CATCHING_UP: catching_up}, lag, unowned
    )


def at_work(at: float, rate: float = 30.0, **told: Any) -> Observation:
    """A loop at work for so many seconds, with so many events a second; `job_away` and others are its faults."""
    clock = datetime.now(UTC) - timedelta(seconds=told.get("until", at) - at)
    ends = {
        "events": {0: round(rate * at)},
        "feedback": {0: round(2.2 * rate * at)},
        "snapshots": {0: round(3.2 * rate * at)},
        "dead_letters": {0: round(told.get("letters", 3))},
    }
    job = job_part(
        events=rate * at,
        keys=140 * rate,
        lag=told.get("job_lag", 4),
        committed_at=clock.timestamp() - 2,
        watermark=1_357_000_000 + at,
        starts=told.get("starts", 1),
    )
    dependencies = (
        away(JOB, "Connection refused") if told.get("job_away") else job,
        _worker(at, rate, WORKERS[0], told),
        _worker(at, rate, WORKERS[1], told),
        derive_part(),
    )
    watched = tuple(one for one in dependencies if one.target.kind not in told.get("unwatched", ()))
    own = StateObservation("flights", "snapshots", {Role.OWNER: 4}, round(told.get("query_lag", 0)), 0)
    derived = StateObservation("tails", "tails", {Role.OWNER: 4}, 0, 0)
    return Observation(at, clock, watched, None if told.get("kafka_unreachable") else ends, (own, derived), ("one",))


def _worker(at: float, rate: float, target: Any, told: dict[str, Any]) -> Any:
    seconds = {worker.CALL_SECONDS: {"reference": [0.004] * round(20 * at) + [0.03] * round(3 * at)}}
    return worker_part(
        target,
        seconds,
        snapshots=1.6 * rate * at,
        result=1.1 * rate * at,
        absence=0.03 * rate * at,
        hit=0.4 * rate * at,
        miss=0.7 * rate * at,
        lag=told.get("worker_lag", 7),
        breaker=told.get("breaker", 0),
        held=told.get("held", 0),
    )


def a_dead_letter(number: int, head: str = "{", reason: str = "malformed") -> DeadLetterSummary:
    """A dead letter of an event that began so; the greater its number, the later."""
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
