"""The console's reads of a loop. Rates are per second, lags in records; null means unknown."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from contracts.api.endpoint import Endpoint, Parameters, Text
from contracts.api.problems import REQUEST_PROBLEMS

Component = Literal[
    "devices", "events", "job", "snapshots", "query", "dead_letters", "feedback", "workers", "apis", "derive"
]

BreakerState = Literal["closed", "half-open", "open"]
Kind = Literal[
    "kafka_unreachable",
    "process_unreachable",
    "catching_up",
    "unowned",
    "job_starting",
    "job_silent",
    "job_failing",
    "batch_stuck",
    "breaker_open",
    "lag_growing",
    "watermark_stuck",
    "dead_letters_increasing",
]
LARGEST = 10**15


class ApplicationQuery(Parameters):
    """The application of the suite, also of the graph of enrichments."""

    application: Text | None = Field(
        default=None,
        min_length=1,
        description="An application of the suite; without it, the first one that the token reads",
    )


class LoopQuery(ApplicationQuery):
    """Parameters of a GET of the loop."""

    since: int | None = Field(
        default=None, ge=0, le=LARGEST, description="With the history after this time, in milliseconds since 1970"
    )


class DeadLettersQuery(ApplicationQuery):
    """Parameters of a GET of the dead letters."""

    limit: int = Field(default=50, ge=0, le=200, description="How many of the latest")


class ConsoleModel(BaseModel):
    """A part of a response."""

    model_config = ConfigDict(frozen=True)


class HealthReason(ConsoleModel):
    """One reason why the loop is not healthy, with the action that resolves it."""

    kind: Kind
    component: str
    """A node of the diagram: kafka, job, workers, api:<name>, query, dead_letters."""
    message: str
    action: str


class UnmonitoredComponent(ConsoleModel):
    """A component whose health is unknown, because no scrape target is set for it."""

    component: str
    """A node of the diagram: job, workers, api:<name>; or derive."""
    message: str
    action: str
    """The setting to change, and its value."""


class HealthReport(ConsoleModel):
    """Whether the loop is healthy, and the reasons if not, the likeliest cause first."""

    healthy: bool | None
    """Null: no reason is found, and some components are not monitored."""
    reasons: tuple[HealthReason, ...] = ()


class TopicStatus(ConsoleModel):
    """A topic. `end` is the sum of its partitions' end offsets: the number of records ever written."""

    name: str
    end: int | None
    rate: float | None
    partitions: int


class ProcessStatus(ConsoleModel):
    """A process of the loop that exports metrics. `unreachable_s` is the time since its last answer."""

    url: str
    up: bool
    error: str | None = None
    unreachable_s: float = 0.0


class JobStatus(ProcessStatus):
    """The Spark job, by the metrics of its last batch; null before its first."""

    starting: bool = False
    """Its streaming query has not started yet."""
    read: float | None = None
    lag: int | None = None
    keys: int | None = None
    batch_s: float | None = None
    pause_s: float | None = None
    committed_s: float | None = None
    """Seconds since the last batch was committed."""
    watermark: datetime | None = None
    failures: int | None = None
    late: float | None = None


class WorkerStatus(ProcessStatus):
    """An enrichment worker."""

    snapshots: float | None = None
    calls: float | None = None
    lag: int | None = None
    in_flight: int | None = None
    waiting: int | None = None
    partitions: int | None = None
    paused: bool = False


class ApiFailure(ConsoleModel):
    """The latest failure of an API whose breaker is not closed."""

    reason: str
    count: int
    """Consecutive calls, of all workers, that failed for this reason."""
    at: datetime


class ApiStatus(ConsoleModel):
    """An external API, summed over all workers."""

    name: str
    calls: dict[str, float]
    """By outcome: result, absence, retryable, permanent, given_up."""
    retries: float | None = None
    cached: float | None = None
    """The cache's hit ratio; null without look-ups."""
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    breaker: BreakerState | None = None
    """Null: no monitored worker reports it."""
    failure: ApiFailure | None = None
    queued: int = 0
    """Requests that wait for capacity, or for the API to be available again."""


class StateStatus(ConsoleModel):
    """A named state on this instance: its partitions by role (owner, standby, catching_up, elsewhere)."""

    name: str
    topic: str
    roles: dict[str, int]
    lag: int
    unowned: int


class LoopMetrics(ConsoleModel):
    """The metrics of the loop at one time."""

    application: str
    components: tuple[Component, ...]
    """Those that this application has: `feedback` with enrichments only, `workers` and `apis` also with webhooks."""
    at: datetime
    kafka: bool
    """Whether the broker answers."""
    topics: dict[str, TopicStatus]
    """By purpose: events, feedback, snapshots, dead_letters; those of the components."""
    job: tuple[JobStatus, ...]
    workers: tuple[WorkerStatus, ...]
    others: dict[str, tuple[ProcessStatus, ...]]
    """The other scrape targets of the components, by kind."""
    unmonitored: tuple[UnmonitoredComponent, ...]
    """Components without a scrape target: their health is unknown."""
    apis: tuple[ApiStatus, ...]
    states: tuple[StateStatus, ...]
    instances: tuple[str, ...]
    recent_failures: int = 0
    """Failures of the job's query within the metrics history."""
    watermark_unchanged_s: float | None = None
    """Seconds for which the watermark has not advanced while events arrived."""


class MetricsPoint(ConsoleModel):
    """One point of the metrics history, recorded at a fixed interval. `at` is in milliseconds since 1970."""

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
    """Of the calls to all APIs, as p95_ms."""
    p95_ms: float | None = None


class ApplicationHealth(ConsoleModel):
    """An application of the suite, and whether its loop is healthy; null as in the health report."""

    name: str
    healthy: bool | None


class LoopResponse(LoopMetrics):
    """GET /v1/loop: the current metrics, the health report, and the metrics history since the requested time."""

    applications: tuple[ApplicationHealth, ...] = ()
    """All applications of the suite, in its order."""

    health: HealthReport
    every_ms: int
    """The interval between two points of the history."""
    history: tuple[MetricsPoint, ...] = ()


class EnrichmentNode(ConsoleModel):
    """An enrichment with its dependencies and the outcomes of its requests; `totals` since the workers started."""

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


class GraphResponse(ConsoleModel):
    """GET /v1/loop/graph: the enrichments in dependency order, and the fields of the state that they read."""

    application: str
    nodes: tuple[EnrichmentNode, ...]
    fields: tuple[str, ...]


class DeadLetterSummary(ConsoleModel):
    """A dead letter, shortened. `written` is the time of the dead letter, `timestamp` that of the original record."""

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


class DeadLettersResponse(ConsoleModel):
    """GET /v1/loop/dead_letters: the number of those read, by reason, and the latest of them."""

    topic: str
    since: datetime | None
    """The time of the first one that was read; null without any."""
    counts: dict[str, int]
    latest: tuple[DeadLetterSummary, ...]


PROBLEMS = ("bad_request", "not_yours", "unknown_application", *REQUEST_PROBLEMS)
LOOP = Endpoint(
    "/v1/loop",
    "The health of an application's loop: its processes, topics and APIs, with their history",
    LoopResponse,
    (*PROBLEMS, "catching_up"),
    LoopQuery,
)
LOOP_GRAPH = Endpoint(
    "/v1/loop/graph",
    "The enrichments with their inputs, and the outcomes of their requests",
    GraphResponse,
    (*PROBLEMS, "catching_up"),
    ApplicationQuery,
)
LOOP_DEAD_LETTERS = Endpoint(
    "/v1/loop/dead_letters",
    "Dead letters by reason, and the latest",
    DeadLettersResponse,
    PROBLEMS,
    DeadLettersQuery,
)
