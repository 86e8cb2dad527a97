"""The figures of a sink."""

from functools import partial

from contracts.metrics.metric import Metric, listed

_counter = partial(Metric, "sink", "counter", labels=("state",))
_gauge = partial(Metric, "sink", "gauge", labels=("state",))
_histogram = partial(Metric, "sink", "histogram", labels=("state",))

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

RECORDS = _counter("records", "Records of the state's topic that are written to the store, or have nothing to write.")
SUPERSEDED = _counter("superseded", "Records that were not written because a newer one of the row was in their batch.")
EXPIRED = _counter("expired", "Records that were not written because their window had expired.")
ROWS = _counter("rows", "Rows and deletions that the store received.")
CHANGED = _counter("changed", "Rows that the store changed; the others were in it in the same or a newer version.")
REMOVED = _counter("removed", "Rows that the sink removed from the store because their window had expired.")
DEAD_LETTERS = _counter("dead_letters", "Records written to the dead-letter topic.")
FAILURES = _counter("failures", "Failed attempts to use the store, each of which is repeated.")
CONFLICTS = _counter("conflicts", "Batches that met another position in the store than expected.")
REWINDS = _counter("rewinds", "Partitions read again because the store had lost writes, or was a new one.")
COMMITS = _counter("commits", "Commits that the broker confirmed.")
KAFKA_ERRORS = _counter("kafka_errors", "Kafka errors after which the sink continued.")
WRITE_SECONDS = _histogram("write_seconds", "The duration of writing a batch, repetitions included.", buckets=SECONDS)
PENDING = _gauge("pending", "Records read and not written yet.")
LAG = _gauge("lag", "Unread records of the topic.")
OUTAGE_SECONDS = _gauge("outage_seconds", "For how long the store has been unavailable; 0 while it answers.")

CATALOGUE = listed(dict(globals()))
