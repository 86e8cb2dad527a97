"""The figures of an enrichment worker.

Its log lines have them too: one with labels is divided there by its last label alone.
"""

from functools import partial

from contracts.metrics.metric import Metric, listed

_counter = partial(Metric, "worker", "counter")
_gauge = partial(Metric, "worker", "gauge")
_histogram = partial(Metric, "worker", "histogram")

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

SNAPSHOTS = _counter("snapshots", "Snapshots read.")
PASSED = _counter("passed", "Snapshots dropped because a later version was seen before.")
REJECTED = _counter("rejected", "Records of the snapshots topic that are no snapshots.")
PLANNED = _counter("planned", "Requests begun, without those that are skipped.")
SPARED = _counter("spared", "Requests not begun because one alike is under way or was answered.")
OVERTAKEN = _counter("overtaken", "Requests given up because a later one of the device was answered first.")
RENEWED = _counter("renewed", "Requests that waited for their API and ask for later inputs instead.")
FORGED = _counter(
    "forged",
    "Requests planned to replace an answer of a version that its state had not reached within the grace.",
    ("enrichment",),
)
BUDGET_STOPS = _counter(
    "budget_stops", "Requests not begun because their device's budget of calls is spent.", ("enrichment",)
)
CALLS = _counter(
    "calls",
    "Calls to APIs by outcome: result, absence, retryable, permanent, given_up.",
    ("api", "enrichment", "outcome"),
)
CALL_SECONDS = _histogram("call_seconds", "How long one call to an API took.", ("api",), SECONDS)
RETRIES = _counter("retries", "Calls made again after one that failed.", ("api", "enrichment"))
BREAKER = _gauge("breaker", "The circuit breaker of an API: 0 closed, 1 half-open, 2 open.", ("api",))
BREAKER_FAILURES = _gauge(
    "breaker_failures",
    "Calls that failed in a row for the latest reason, while the breaker is not closed.",
    ("api", "reason"),
)
BREAKER_FAILED_AT = _gauge("breaker_failed_at", "When the last of them failed, in seconds since 1970.", ("api",))
CACHE = _counter(
    "cache",
    "Answers sought in the cache by outcome: hit, miss, shared (one alike was being asked for).",
    ("api", "outcome"),
)
RATE_WAITS = _counter("rate_waits", "Calls that waited because they would have been over the API's rate.", ("api",))
ANSWERS = _counter(
    "answers", "Requests answered by status: result, absence, failure, skipped.", ("enrichment", "status")
)
DEAD_LETTERS = _counter("dead_letters", "Records written to the dead letters.", ("reason",))
ABANDONED = _counter("abandoned", "Requests given up because their partition went to another worker.")
COMMITS = _counter("commits", "Commits that the broker confirmed.")
KAFKA_ERRORS = _counter("kafka_errors", "Errors of Kafka that were survived.")
IN_FLIGHT = _gauge("in_flight", "Requests under way.")
WAITING = _gauge("waiting", "Snapshots read and not looked at yet.")
HELD = _gauge("held", "Requests that wait for room, or for their API to be available again.", ("api",))
PARKED = _gauge("parked", "Snapshots to be read again when their API is available.", ("api",))
UNFINISHED = _gauge("unfinished", "Snapshots that wait and requests that are not answered.")
UNFINISHED_BYTES = _gauge("unfinished_bytes", "Bytes of what was read and is not finished.")
FULL = _gauge("full", "Partitions that wait for a slow request, a whole window behind.")
PAUSED = _gauge("paused", "Whether reading is paused because too much is under way.")
PARTITIONS = _gauge("partitions", "Partitions assigned.")
UNCOMMITTED = _gauge("uncommitted", "Offsets read beyond the contiguous prefix of finished work.")
LAG = _gauge("lag", "Snapshots in the topic that were not read yet, in the partitions assigned.")

CATALOGUE = listed(dict(globals()))
