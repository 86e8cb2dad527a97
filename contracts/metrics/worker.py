"""The metrics of an enrichment worker.

Its log lines contain them too; there a metric with labels is divided by its last label only.
"""

from functools import partial

from contracts.metrics.metric import Metric, listed

_counter = partial(Metric, "worker", "counter")
_gauge = partial(Metric, "worker", "gauge")
_histogram = partial(Metric, "worker", "histogram")

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

SNAPSHOTS = _counter("snapshots", "Snapshots read.")
OUTDATED = _counter("outdated", "Snapshots of a version that was seen before, or of an earlier one.")
REJECTED = _counter("rejected", "Records of the snapshots topic that are no snapshots.")
PLANNED = _counter("planned", "Requests started, without skipped ones.")
SUPPRESSED = _counter("suppressed", "Requests not started because the same request is running or was answered.")
SUPERSEDED = _counter(
    "superseded", "Requests cancelled because a later one of the same device and enrichment was answered first."
)
COALESCED = _counter("coalesced", "Queued requests that took the inputs of a later snapshot.")
WITHDRAWN = _counter("withdrawn", "Queued requests dropped because the answer to a later snapshot's inputs was known.")
FORGED = _counter(
    "forged",
    "Requests planned to replace an answer of a version that its state had not reached within the grace.",
    ("enrichment",),
)
BUDGET_STOPS = _counter("budget_stops", "Requests not started because the device's budget is spent.", ("enrichment",))
EXPIRED = _counter("expired", "Requests not started because their window had expired.", ("enrichment",))
CALLS = _counter(
    "calls",
    "Calls to APIs by outcome: result, absence, retryable, permanent, given_up.",
    ("api", "enrichment", "outcome"),
)
CALL_SECONDS = _histogram("call_seconds", "The duration of a call to an API.", ("api",), SECONDS)
RETRIES = _counter("retries", "Calls repeated after a failed one.", ("api", "enrichment"))
BREAKER = _gauge(
    "breaker",
    "The circuit breaker of an API: 0 closed, 1 half-open, 2 open, also while the API is suspended.",
    ("api",),
)
BREAKER_FAILURES = _gauge(
    "breaker_failures",
    "Calls that failed in a row for the latest reason, while the breaker is not closed.",
    ("api", "reason"),
)
BREAKER_FAILED_AT = _gauge("breaker_failed_at", "Time of the last of these failures, in seconds since 1970.", ("api",))
TRIALS = _counter("trials", "Requests of a suspended API that were tried again.", ("api",))
CACHE = _counter(
    "cache",
    "Cache lookups by outcome: hit, miss, shared (with a call in flight).",
    ("api", "outcome"),
)
RATE_WAITS = _counter("rate_waits", "Calls that waited for the API's rate limit.", ("api",))
ANSWERS = _counter(
    "answers", "Requests answered by status: result, absence, failure, skipped.", ("enrichment", "status")
)
DEAD_LETTERS = _counter("dead_letters", "Records written to the dead-letter topic.", ("reason",))
ABANDONED = _counter("abandoned", "Requests abandoned because their partition was revoked.")
COMMITS = _counter("commits", "Commits that the broker confirmed.")
KAFKA_ERRORS = _counter("kafka_errors", "Kafka errors after which the worker continued.")
IN_FLIGHT = _gauge("in_flight", "Running requests.")
WAITING = _gauge("waiting", "Snapshots read and not planned yet.")
QUEUED = _gauge("queued", "Requests that wait for a free slot, or for their API to be available again.", ("api",))
DEFERRED = _gauge("deferred", "Snapshots to read and plan again when their API is available.", ("api",))
UNFINISHED = _gauge("unfinished", "Unplanned snapshots and unanswered requests.")
UNFINISHED_BYTES = _gauge("unfinished_bytes", "Bytes of the unplanned snapshots and unanswered requests.")
FULL = _gauge("full", "Partitions with so many uncommitted offsets that reading pauses.")
PAUSED = _gauge("paused", "Whether reading is paused because too much is unfinished.")
PARTITIONS = _gauge("partitions", "Partitions assigned.")
UNCOMMITTED = _gauge("uncommitted", "Offsets read beyond the contiguous prefix of finished ones.")
LAG = _gauge("lag", "Unread snapshots of the assigned partitions.")

CATALOGUE = listed(dict(globals()))
