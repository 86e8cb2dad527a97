"""What the console's JSON looks like. Rates are per second, lags in records; null is unknown."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

BreakerState = Literal["closed", "half-open", "open"]
Kind = Literal[
    "kafka_away",
    "part_away",
    "catching_up",
    "unowned",
    "job_starting",
    "job_silent",
    "job_failing",
    "batch_stuck",
    "breaker_open",
    "lag_growing",
    "watermark_stuck",
    "dead_letters_rising",
]


class Told(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(frozen=True)


class Trouble(Told):
    """Something that calls for somebody: what, where in the picture, in words, and what to do."""

    what: Kind
    where: str
    """A node of the picture: kafka, job, workers, api:<name>, query, dead_letters."""
    says: str
    do: str


class NotWatched(Told):
    """A component whose health is not known, because no scrape target is set for it: where, in words, what to do."""

    where: str
    """A node of the picture: job, workers, api:<name>; or derive."""
    says: str
    do: str
    """Which setting to set, to what."""


class Verdict(Told):
    """Whether the loop is healthy, and if not, where; the likeliest cause first."""

    healthy: bool | None
    """Null: no trouble is seen, and some components are not watched."""
    troubles: tuple[Trouble, ...] = ()


class TopicNow(Told):
    """A topic. `end` is the sum of its partitions' end offsets: how many records it ever had."""

    name: str
    end: int | None
    rate: float | None
    partitions: int


class PartNow(Told):
    """A process of the loop that serves figures. `away_s`: for how long it has not answered."""

    url: str
    up: bool
    why: str | None = None
    away_s: float = 0.0


class JobNow(PartNow):
    """The Spark job, by the figures of its last batch; null before its first."""

    starting: bool = False
    """Whether its query was not started yet."""
    read: float | None = None
    lag: int | None = None
    keys: int | None = None
    batch_s: float | None = None
    pause_s: float | None = None
    committed_s: float | None = None
    """How long ago the last batch was committed."""
    watermark: datetime | None = None
    failures: int | None = None
    late: float | None = None


class WorkerNow(PartNow):
    """An enrichment worker."""

    snapshots: float | None = None
    calls: float | None = None
    lag: int | None = None
    in_flight: int | None = None
    waiting: int | None = None
    partitions: int | None = None
    paused: bool = False


class ApiFailure(Told):
    """The latest failure of an API that counts as down."""

    reason: str
    count: int
    """How many calls of all workers failed for this reason in a row."""
    at: datetime


class ApiNow(Told):
    """An external API, as all workers see it together."""

    name: str
    calls: dict[str, float]
    """By outcome: result, absence, retryable, permanent, given_up."""
    retries: float | None = None
    cached: float | None = None
    """The share of answers that the cache gave; null when none was sought there."""
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    breaker: BreakerState | None = None
    """Null: no worker that is watched reports it."""
    failure: ApiFailure | None = None
    held: int = 0
    """Requests that wait for room, or for the API to be available again."""


class StateNow(Told):
    """A named state, as this instance holds it: partitions by role (owner, standby, catching_up, elsewhere)."""

    name: str
    topic: str
    roles: dict[str, int]
    lag: int
    unowned: int


class Figures(Told):
    """The loop at one time."""

    application: str
    at: datetime
    kafka: bool
    """Whether the broker answers."""
    topics: dict[str, TopicNow]
    """By what they are: events, feedback, snapshots, dead_letters."""
    job: tuple[JobNow, ...]
    workers: tuple[WorkerNow, ...]
    others: dict[str, tuple[PartNow, ...]]
    """Further parts that are named, by their kind."""
    not_watched: tuple[NotWatched, ...]
    """Components without a scrape target: nothing here tells whether they are healthy."""
    apis: tuple[ApiNow, ...]
    states: tuple[StateNow, ...]
    instances: tuple[str, ...]
    failures_lately: int = 0
    """How often the job's query failed in the time of the course."""
    watermark_still_s: float | None = None
    """For how long the watermark has not moved, while events came in."""


class Point(Told):
    """The course of the figures: one of many such points, some seconds apart. `at` is in milliseconds since 1970."""

    at: int
    events: float | None = None
    snapshots: float | None = None
    feedback: float | None = None
    calls: float | None = None
    dead_letters: float | None = None
    job_lag: int | None = None
    worker_lag: int | None = None
    query_lag: int | None = None
    p50_ms: float | None = None
    """Of the calls to all APIs, with the next."""
    p95_ms: float | None = None


class LoopAnswer(Figures):
    """GET /v1/loop: the figures, what they mean, and the course since the time that was asked for."""

    verdict: Verdict
    every_ms: int
    """How often the loop is looked at."""
    course: tuple[Point, ...] = ()


class Node(Told):
    """An enrichment with its needs, and what came of its requests; `totals` since the workers started."""

    name: str
    step: int
    """1 needs no other enrichment; each further step needs one before it."""
    api: str
    gives: str
    needs: tuple[str, ...]
    optional: tuple[str, ...]
    notes: tuple[str, ...]
    totals: dict[str, int]
    """By status: result, absence, failure, skipped."""
    rates: dict[str, float]
    calls: float | None
    breaker: BreakerState | None


class GraphAnswer(Told):
    """GET /v1/loop/graph: the enrichments, each after what it needs, and the fields of the state that they need."""

    application: str
    nodes: tuple[Node, ...]
    fields: tuple[str, ...]


class Letter(Told):
    """A dead letter, shortened. `written` is when it was written, `timestamp` the broker's time of its origin."""

    reason: str
    detail: str | None
    key: str | None
    written: datetime
    topic: str
    partition: int
    offset: int
    timestamp: datetime | None
    head: str | None
    enrichment: str | None = None
    attempts: int | None = None
    response: str | None = None


class LettersAnswer(Told):
    """GET /v1/loop/dead_letters: those looked at, by reason, and the latest of them."""

    topic: str
    since: datetime | None
    """When the first one that was looked at was written; null without any."""
    counts: dict[str, int]
    latest: tuple[Letter, ...]
